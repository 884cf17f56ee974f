// batch_norm: (x - mean) / sqrt(variance + eps) * weight + bias per channel of x[N,C,...], statistics constant.
#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/batch_norm/routines.inc"
#include "layers/contract/collect.inc"

void batch_norm_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  layer.attrs.expect_only({"eps"});
  epsilon(layer);
  expect_weights(layer, {"mean", "variance"}, {"weight", "bias"}, Shape{channel_count(x)});
  return x;
}

}  // namespace

const LayerDef& batch_norm_layer() {
  static const LayerDef def{"batch_norm", infer, one_output<batch_norm_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
