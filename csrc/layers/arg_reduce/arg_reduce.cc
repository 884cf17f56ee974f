#include "layers/arg_reduce/arg_reduce.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/arg_reduce/routines.inc"
#include "layers/contract/collect.inc"

ArgReduceParams arg_reduce_params(const Layer& layer, const Shape& x) {
  layer.attrs.expect_only({"function", "axis", "keepdim", "last", "nan"});
  static constexpr std::pair<std::string_view, bool> functions[] = {{"argmax", false}, {"argmin", true}};
  const int64_t axis = layer.attrs.integer("axis");
  expect_axis("axis", axis, x.rank());
  const int at = static_cast<int>(axis);
  const bool last = layer.attrs.flag("last", false), nan = layer.attrs.flag("nan", true);
  return {function_of(layer, functions), last, nan, at, x.product(0, at), x[at], x.product(at + 1, x.rank())};
}

static OutputDescs infer_arg_reduce(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 1);
  const ArgReduceParams p = arg_reduce_params(layer, in[0].shape);
  if (in[0].kind == ValueKind::boolean) throw Error("truth values have no order");
  if (in[0].kind == ValueKind::integer) integer_type(in[0]);
  if (p.size == 0) throw Error("there is nothing along axis " + std::to_string(p.axis) + " of " + in[0].str());
  Shape out;
  for (int axis = 0; axis < in[0].shape.rank(); ++axis) {
    if (axis != p.axis) {
      out.push_back(in[0].shape[axis]);
    } else if (layer.attrs.flag("keepdim", false)) {
      out.push_back(1);
    }
  }
  return desc_of(out, DType::int64);
}

const LayerDef& arg_reduce_layer() {
  static constexpr LayerDef def{"arg_reduce", infer_arg_reduce, one_output<arg_reduce_reference>, collect_routines,
                                Takes::any};
  return def;
}

}  // namespace softneuro
