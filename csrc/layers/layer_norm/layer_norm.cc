#include "layers/layer_norm/layer_norm.h"

#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/layer_norm/routines.inc"
#include "layers/contract/collect.inc"

void layer_norm_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

LayerNormParams layer_norm_params(const Layer& layer, const Shape& shape) {
  layer.attrs.expect_only({"axes", "eps"});
  LayerNormParams p;
  p.eps = epsilon(layer);
  const int64_t axes = layer.attrs.integer("axes");
  if (axes < 1 || axes > shape.rank()) {
    throw Error("axes is " + std::to_string(axes) + ", which shape " + shape.str() + " does not have");
  }
  for (int axis = shape.rank() - static_cast<int>(axes); axis < shape.rank(); ++axis) {
    p.normalized.push_back(shape[axis]);
  }
  expect_weights(layer, {}, {"weight", "bias"}, p.normalized);
  return p;
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  layer_norm_params(layer, x.shape);
  return x;
}

}  // namespace

const LayerDef& layer_norm_layer() {
  static const LayerDef def{"layer_norm", infer, one_output<layer_norm_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
