#include "layers/dynamic_quantize/dynamic_quantize.h"

#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/dynamic_quantize/routines.inc"
#include "layers/contract/collect.inc"

void dynamic_quantize_reference(const Layer& layer, std::span<const RefTensor> in, std::span<const RefTensor> outs);

DynamicQuantizeParams dynamic_quantize_params(const Layer& layer, const Shape& in) {
  layer.attrs.expect_only({"rows", "least", "most", "symmetric", "reciprocal", "eps"});
  DynamicQuantizeParams p;
  static_cast<DynamicSteps&>(p) = dynamic_steps(layer.attrs);
  p.by_row = layer.attrs.flag("rows", false);
  if (p.by_row && in.rank() == 0) throw Error("its input has no rows", {}, "give one of rank 1 or more");
  p.c = p.by_row ? in[in.rank() - 1] : in.elements();
  p.rows = p.by_row ? in.product(0, in.rank() - 1) : 1;
  return p;
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  expect_weights(layer, {}, {}, {});
  TensorDesc steps, scale;
  steps.shape = x.shape;
  if (dynamic_quantize_params(layer, x.shape).by_row) {
    scale.shape = x.shape;
    scale.shape[x.shape.rank() - 1] = 1;
  }
  return {steps, scale, scale};
}

}  // namespace

const LayerDef& dynamic_quantize_layer() {
  static const LayerDef def{"dynamic_quantize", infer, dynamic_quantize_reference, collect_routines};
  return def;
}

}  // namespace softneuro
