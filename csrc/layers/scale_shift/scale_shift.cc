// scale_shift: x * scale + shift per channel of x[N,C,...].
#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/scale_shift/routines.inc"
#include "layers/contract/collect.inc"

void scale_shift_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  layer.attrs.expect_only({});
  expect_weights(layer, {"scale", "shift"}, {}, Shape{channel_count(x)});
  return x;
}

}  // namespace

const LayerDef& scale_shift_layer() {
  static const LayerDef def{"scale_shift", infer, one_output<scale_shift_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
