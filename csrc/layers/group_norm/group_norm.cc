#include "layers/group_norm/group_norm.h"

#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/group_norm/routines.inc"
#include "layers/contract/collect.inc"

NormalizedRows group_norm_params(const Layer& layer, const TensorDesc& x) {
  layer.attrs.expect_only({"groups", "eps"});
  const int64_t channels = channel_count(x), groups = layer.attrs.integer("groups");
  if (groups < 1 || channels % groups != 0) {
    throw Error("groups " + std::to_string(groups) + " does not divide " + std::to_string(channels) + " channels");
  }
  expect_weights(layer, {}, {"weight", "bias"}, Shape{channels});
  const int64_t plane = x.shape.product(2, x.shape.rank());
  return {.images = x.shape[0],
          .rows = groups,
          .size = channels / groups * plane,
          .plane = plane,
          .weights = channels,
          .eps = epsilon(layer)};
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  group_norm_params(layer, x);
  return x;
}

void reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  normalize_reference(layer, group_norm_params(layer, {out.shape}), in[0].data, out.data);
}

}  // namespace

const LayerDef& group_norm_layer() {
  static const LayerDef def{"group_norm", infer, one_output<reference>, collect_routines};
  return def;
}

}  // namespace softneuro
