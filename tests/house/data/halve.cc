// halve: half of each value, and as a second output its negative. A layer for the test that shows how one is added.
#include "layers/contract/layer.h"
#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/halve/routines.inc"
#include "layers/contract/collect.inc"

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_no_weights(layer);
  expect_inputs(in, 1);
  return {TensorDesc{in[0].shape}, TensorDesc{in[0].shape}};
}

void reference(const Layer&, std::span<const RefTensor> in, std::span<const RefTensor> outs) {
  for (int64_t i = 0; i < in[0].shape.elements(); ++i) {
    outs[0].data[i] = in[0].data[i] / 2;
    outs[1].data[i] = -in[0].data[i] / 2;
  }
}

}  // namespace

const LayerDef& halve_layer() {
  static const LayerDef def{"halve", infer, reference, collect_routines};
  return def;
}

}  // namespace softneuro
