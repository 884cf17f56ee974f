// Integers that float32 does not hold exactly become the nearest float, as hosts have it. Others come as float32, which
// an adapt makes of them.
#include "layers/shared/convert.h"

namespace softneuro {

void cast_convert_routines(RoutineList& list) {
  for (const DType dtype : {DType::int32, DType::int64}) add_convert_routines(list, "cast", dtype, DType::float32);
}

}  // namespace softneuro
