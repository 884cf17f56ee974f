#include "layers/layer_norm/layer_norm.h"

#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/layer_norm/routines.inc"
#include "layers/contract/collect.inc"

NormalizedRows last_axes_params(const Layer& layer, const TensorDesc& x,
                                std::initializer_list<std::string_view> roles) {
  layer.attrs.expect_only({"axes", "eps"});
  const Shape& shape = x.shape;
  const int64_t axes = layer.attrs.integer("axes");
  if (axes < 1 || axes > shape.rank()) {
    throw Error("axes is " + std::to_string(axes) + ", which shape " + shape.str() + " does not have");
  }
  const int first = shape.rank() - static_cast<int>(axes);
  Shape normalized;
  for (int axis = first; axis < shape.rank(); ++axis) normalized.push_back(shape[axis]);
  expect_weights(layer, {}, roles, normalized);
  const int64_t size = normalized.elements();
  return {.images = first == 0 ? 1 : shape[0],
          .rows = first == 0 ? 1 : shape.product(1, first),
          .size = size,
          .weights = size,
          .eps = epsilon(layer)};
}

NormalizedRows layer_norm_params(const Layer& layer, const TensorDesc& x) {
  return last_axes_params(layer, x, {"weight", "bias"});
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  layer_norm_params(layer, x);
  return x;
}

void reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  normalize_reference(layer, layer_norm_params(layer, {out.shape}), in[0].data, out.data);
}

}  // namespace

const LayerDef& layer_norm_layer() {
  static const LayerDef def{"layer_norm", infer, one_output<reference>, collect_routines};
  return def;
}

}  // namespace softneuro
