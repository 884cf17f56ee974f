// pool2d by the kernels that walk windows.
#include "layers/pool2d/windows.h"

namespace softneuro {

void pool2d_window_routines(RoutineList& list) { add_pool_routines(list, "pool2d", pool2d_windows); }

}  // namespace softneuro
