// Of bytes: each becomes another by a table.
#include "layers/byte_table.h"

namespace softneuro {

void quantize_table_routines(RoutineList& list) {
  add_byte_table_routines(list, "quantize", [](const Layer&, double x) { return x; });
}

}  // namespace softneuro
