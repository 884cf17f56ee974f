#include "layers/constant/constant.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/constant/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_constant(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_inputs(in, 0);
  const Constant& value = layer.weight("value");
  if (layer.weights.size() != 1) throw Error("takes one weight, value");
  return value->desc();
}

Schema constant_schema(const Layer& layer) {
  const ConstantData& value = *layer.weight("value");
  // Half precision as float32, in which nets compute.
  if (value.desc().kind == ValueKind::real && value.desc().quantization == nullptr) return f32_nchw;
  return f32_nchw.with(value.dtype());
}

const LayerDef& constant_layer() {
  static constexpr LayerDef def{"constant", infer_constant, one_output<constant_reference>, collect_routines,
                                Takes::moving};
  return def;
}

}  // namespace softneuro
