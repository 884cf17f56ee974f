// group_norm of row-major blobs: a group is one run of memory.
#include "layers/layer_norm/rows.h"
#include "layers/group_norm/group_norm.h"

namespace softneuro {

void group_norm_rows(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<NormalizeRoutine>("group_norm", isa, group_norm_params);
}

}  // namespace softneuro
