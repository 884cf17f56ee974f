#include "layers/compare/compare.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/broadcast.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/compare/routines.inc"
#include "layers/contract/collect.inc"

Comparison comparison_of(const Layer& layer) {
  static constexpr std::pair<std::string_view, Comparison> functions[] = {
      {"eq", Comparison::eq}, {"ne", Comparison::ne}, {"lt", Comparison::lt},
      {"le", Comparison::le}, {"gt", Comparison::gt}, {"ge", Comparison::ge}};
  return function_of(layer, functions);
}

static OutputDescs infer_compare(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"function"});
  comparison_of(layer);
  expect_no_weights(layer);
  expect_inputs(in, 2);
  expect_one_kind(in);
  return TensorDesc{.shape = broadcast_shape(in[0].shape, in[1].shape), .kind = ValueKind::boolean};
}

const LayerDef& compare_layer() {
  static constexpr LayerDef def{"compare", infer_compare, one_output<compare_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
