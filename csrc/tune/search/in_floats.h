// Why layers of a plan compute with floats what was quantized.
#pragma once

#include "tune/tuner.h"

namespace softneuro {

// Fills LayerReport::in_floats of a result that is otherwise complete.
void note_floats(const Graph& graph, int threads, TuneResult& result);

}  // namespace softneuro
