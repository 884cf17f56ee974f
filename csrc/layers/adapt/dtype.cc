// Conversions between float32 and every other type, in the layouts that hosts have.
#include "layers/shared/convert.h"

namespace softneuro {

void adapt_dtype_routines(RoutineList& list) {
  for (const DType dtype : all_dtypes()) {
    add_convert_routines(list, "adapt", dtype, DType::float32);
    add_convert_routines(list, "adapt", DType::float32, dtype);
  }
}

}  // namespace softneuro
