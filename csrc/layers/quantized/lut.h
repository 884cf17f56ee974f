// Layers of one quantized input and a quantized output that make of each element another by itself: a table of all 256
// bytes, exact whatever the function.
#pragma once

#include "layers/contract/routine.h"

namespace softneuro {

// What becomes of a real value; the layer's post-ops come on top.
using ByteFunction = double (*)(const Layer& layer, double x);

void add_lut_routines(RoutineList& list, const char* layer_type, ByteFunction function);

}  // namespace softneuro
