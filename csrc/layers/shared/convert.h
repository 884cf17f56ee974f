// Routines that turn the elements of a blob into another type's where they lie in memory, one after the other.
#pragma once

#include "layers/contract/routine.h"

namespace softneuro {

// What converts between two types in one layout; adds none for levels that have no kernel for them.
void add_convert_routines(RoutineList& list, const char* layer_type, DType from, DType to);

}  // namespace softneuro
