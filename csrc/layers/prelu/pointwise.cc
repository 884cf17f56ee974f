// prelu in every layout.
#include "layers/scale_shift/pointwise.h"

namespace softneuro {

void prelu_pointwise(RoutineList& list) {
  const auto values = [](const Layer& layer) { return ChannelConstants{reference_weight(layer, "weight")}; };
  add_channel_routines(list, {"prelu", ElementwiseOp::prelu, {"weights"}, values});
}

}  // namespace softneuro
