#include "layers/constant/constant.h"

#include "layers/routine.h"
#include "layers/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/constant/routines.inc"
#include "layers/collect.inc"

static TensorDesc infer_constant(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_inputs(in, 0);
  const Constant& value = layer.weight("value");
  if (layer.weights.size() != 1) throw Error("takes one weight, value");
  return {value->shape(), DType::float32};
}

const LayerDef& constant_layer() {
  static constexpr LayerDef def{"constant", infer_constant, constant_reference, collect_routines};
  return def;
}

}  // namespace softneuro
