#include "layers/gather/gather.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/gather/routines.inc"
#include "layers/contract/collect.inc"

GatherParams gather_params(const Layer& layer, const Shape& x) {
  layer.attrs.expect_only({"axis", "from_end"});
  const int64_t axis = layer.attrs.integer("axis");
  expect_axis("axis", axis, x.rank());
  return {static_cast<int>(axis), x[static_cast<int>(axis)], layer.attrs.flag("from_end", false)};
}

static OutputDescs infer_gather(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 2);
  const Shape &x = in[0].shape, &ids = in[1].shape;
  const GatherParams p = gather_params(layer, x);
  integer_type(in[1]);
  bool fits = ids.rank() == x.rank();
  for (int axis = 0; fits && axis < x.rank(); ++axis) fits = axis == p.axis || ids[axis] <= x[axis];
  if (!fits)
    throw Error("indices of " + ids.str() + " are beyond " + x.str() + " beside axis " + std::to_string(p.axis));
  if (p.size == 0 && ids.elements() != 0) throw Error("there is nothing to take of " + in[0].str());
  TensorDesc out = in[0];
  out.shape = ids;
  out.quantization = nullptr;
  return out;
}

const LayerDef& gather_layer() {
  static constexpr LayerDef def{"gather", infer_gather, one_output<gather_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
