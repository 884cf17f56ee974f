#include "layers/dynamic_linear/dynamic_linear.h"

#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/dynamic_linear/routines.inc"
#include "layers/contract/collect.inc"

void dynamic_linear_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  TensorDesc out = only_input(in);
  out.shape[out.shape.rank() - 1] = dynamic_linear_params(layer, out).size.k;
  return out;
}

}  // namespace

DynamicLinearParams dynamic_linear_params(const Layer& layer, const TensorDesc& in) {
  const Attrs& attrs = layer.attrs;
  attrs.expect_only({"rows", "least", "most", "symmetric", "reciprocal", "eps"});
  DynamicLinearParams p;
  p.size = linear_sizes(layer, in);
  const TensorDesc& weight = layer.weight("weight")->desc();
  if (weight.quantization == nullptr) throw Error("the weight is not quantized");
  static_cast<DynamicSteps&>(p) = dynamic_steps(attrs);
  p.rows = attrs.flag("rows", false);
  return p;
}

const LayerDef& dynamic_linear_layer() {
  static const LayerDef def{"dynamic_linear", infer, one_output<dynamic_linear_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
