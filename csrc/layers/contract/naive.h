// The routine that every layer type has: its reference, wrapped for float32 row-major blobs.
#pragma once

#include <memory>

#include "layers/contract/routine.h"

namespace softneuro {

std::unique_ptr<Routine> make_naive_routine(const LayerDef& def);

}  // namespace softneuro
