#include "layers/softmax/softmax.h"

#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/softmax/routines.inc"
#include "layers/contract/collect.inc"

void softmax_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

SoftmaxParams softmax_params(const Layer& layer, const Shape& shape) {
  layer.attrs.expect_only({"axis", "log", "safe"});
  const int64_t axis = layer.attrs.integer("axis");
  if (axis < 0 || axis >= shape.rank()) {
    throw Error("axis " + std::to_string(axis) + " is not one of shape " + shape.str());
  }
  const SoftmaxParams params{static_cast<int>(axis), layer.attrs.flag("log", false), layer.attrs.flag("safe", false)};
  if (params.log && params.safe) throw Error("a softmax is either a logarithm or safe");
  return params;
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  softmax_params(layer, x.shape);
  expect_weights(layer, {}, {}, {});
  return x;
}

}  // namespace

const LayerDef& softmax_layer() {
  static const LayerDef def{"softmax", infer, one_output<softmax_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
