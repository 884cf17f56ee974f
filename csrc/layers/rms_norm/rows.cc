#include "layers/layer_norm/rows.h"
#include "layers/rms_norm/rms_norm.h"

namespace softneuro {

void rms_norm_rows(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<NormalizeRoutine>("rms_norm", isa, rms_norm_params);
}

}  // namespace softneuro
