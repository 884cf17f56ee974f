#include "layers/integer_binary/integer_binary.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/broadcast.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/integer_binary/routines.inc"
#include "layers/contract/collect.inc"

IntegerOp integer_op(const Layer& layer) {
  static constexpr std::pair<std::string_view, IntegerOp> functions[] = {{"add", IntegerOp::add},
                                                                         {"sub", IntegerOp::sub},
                                                                         {"mul", IntegerOp::mul},
                                                                         {"min", IntegerOp::min},
                                                                         {"max", IntegerOp::max}};
  return function_of(layer, functions);
}

static OutputDescs infer_integer_binary(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"function"});
  integer_op(layer);
  expect_no_weights(layer);
  expect_inputs(in, 2);
  expect_one_kind(in);
  return desc_of(broadcast_shape(in[0].shape, in[1].shape), integer_type(in[0]));
}

const LayerDef& integer_binary_layer() {
  static constexpr LayerDef def{"integer_binary", infer_integer_binary, one_output<integer_binary_reference>,
                                collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
