// batch_norm in every layout, as a scale and a shift per channel.
#include <cmath>

#include "layers/scale_shift/pointwise.h"
#include "layers/weights/weights_check.h"

namespace softneuro {
namespace {

ChannelConstants scale_and_shift(const Layer& layer) {
  const std::vector<double> mean = reference_weight(layer, "mean"), variance = reference_weight(layer, "variance");
  std::vector<double> scale(mean.size(), 1.0), shift(mean.size(), 0.0);
  if (layer.find_weight("weight") != nullptr) scale = reference_weight(layer, "weight");
  if (layer.find_weight("bias") != nullptr) shift = reference_weight(layer, "bias");
  const double eps = epsilon(layer);
  for (size_t c = 0; c < mean.size(); ++c) {
    scale[c] /= std::sqrt(variance[c] + eps);
    shift[c] -= mean[c] * scale[c];
  }
  return {scale, shift};
}

}  // namespace

void batch_norm_pointwise(RoutineList& list) {
  add_channel_routines(list, {"batch_norm", ElementwiseOp::scale_shift, {"scale", "shift"}, scale_and_shift});
}

}  // namespace softneuro
