#include "layers/take/take.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/take/routines.inc"
#include "layers/contract/collect.inc"

TakeParams take_params(const Layer& layer, const Shape& x) {
  layer.attrs.expect_only({"axis", "from_end"});
  const int64_t axis = layer.attrs.integer("axis");
  expect_axis("axis", axis, x.rank());
  const int at = static_cast<int>(axis);
  return {x.product(0, at), x[at], x.product(at + 1, x.rank()), layer.attrs.flag("from_end", false)};
}

static OutputDescs infer_take(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 2);
  const TakeParams p = take_params(layer, in[0].shape);
  integer_type(in[1]);
  if (p.size == 0) throw Error("there is nothing to take of " + in[0].str());
  TensorDesc out = in[0];
  out.shape = {};
  const auto axis = static_cast<int>(layer.attrs.integer("axis"));
  for (int i = 0; i < axis; ++i) out.shape.push_back(in[0].shape[i]);
  for (const int64_t dim : in[1].shape) out.shape.push_back(dim);
  for (int i = axis + 1; i < in[0].shape.rank(); ++i) out.shape.push_back(in[0].shape[i]);
  out.quantization = nullptr;
  return out;
}

const LayerDef& take_layer() {
  static constexpr LayerDef def{"take", infer_take, one_output<take_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
