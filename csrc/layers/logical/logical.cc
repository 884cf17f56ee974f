#include "layers/logical/logical.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/broadcast.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/logical/routines.inc"
#include "layers/contract/collect.inc"

LogicalOp logical_op(const Layer& layer) {
  static constexpr std::pair<std::string_view, LogicalOp> functions[] = {
      {"and", LogicalOp::both}, {"or", LogicalOp::either}, {"xor", LogicalOp::one_of}, {"not", LogicalOp::opposite}};
  return function_of(layer, functions);
}

static OutputDescs infer_logical(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"function"});
  expect_no_weights(layer);
  expect_inputs(in, logical_op(layer) == LogicalOp::opposite ? 1 : 2);
  for (const TensorDesc& desc : in) {
    if (desc.kind != ValueKind::boolean) throw Error(desc.str() + " is not of booleans");
  }
  return TensorDesc{.shape = broadcast_shape(in[0].shape, in.back().shape), .kind = ValueKind::boolean};
}

const LayerDef& logical_layer() {
  static constexpr LayerDef def{"logical", infer_logical, one_output<logical_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
