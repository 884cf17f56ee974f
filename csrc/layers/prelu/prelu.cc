// prelu: x > 0 ? x : weight * x; weight[1], or [C] of x[N,C,...].
#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/prelu/routines.inc"
#include "layers/contract/collect.inc"

void prelu_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  layer.attrs.expect_only({});
  const bool one = layer.weight("weight")->elements() == 1;
  expect_weights(layer, {"weight"}, {}, Shape{one ? 1 : channel_count(x)});
  return x;
}

}  // namespace

const LayerDef& prelu_layer() {
  static const LayerDef def{"prelu", infer, one_output<prelu_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
