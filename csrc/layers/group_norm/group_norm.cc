#include "layers/group_norm/group_norm.h"

#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/group_norm/routines.inc"
#include "layers/contract/collect.inc"

void group_norm_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

GroupNormParams group_norm_params(const Layer& layer, const TensorDesc& x) {
  layer.attrs.expect_only({"groups", "eps"});
  const int64_t channels = channel_count(x), groups = layer.attrs.integer("groups");
  if (groups < 1 || channels % groups != 0) {
    throw Error("groups " + std::to_string(groups) + " does not divide " + std::to_string(channels) + " channels");
  }
  expect_weights(layer, {}, {"weight", "bias"}, Shape{channels});
  return {groups, epsilon(layer)};
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  group_norm_params(layer, x);
  return x;
}

}  // namespace

const LayerDef& group_norm_layer() {
  static const LayerDef def{"group_norm", infer, one_output<group_norm_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
