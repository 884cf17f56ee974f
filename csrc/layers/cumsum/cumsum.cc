#include "layers/cumsum/cumsum.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/cumsum/routines.inc"
#include "layers/contract/collect.inc"

CumsumParams cumsum_params(const Layer& layer, const Shape& x) {
  layer.attrs.expect_only({"axis", "exclusive", "reverse"});
  const int64_t axis = layer.attrs.integer("axis");
  expect_axis("axis", axis, x.rank());
  return {static_cast<int>(axis), layer.attrs.flag("exclusive", false), layer.attrs.flag("reverse", false)};
}

static OutputDescs infer_cumsum(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 1);
  cumsum_params(layer, in[0].shape);
  if (in[0].kind == ValueKind::real) return TensorDesc{in[0].shape};
  return desc_of(in[0].shape, integer_type(in[0]));
}

const LayerDef& cumsum_layer() {
  static constexpr LayerDef def{"cumsum", infer_cumsum, one_output<cumsum_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
