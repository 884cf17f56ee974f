#include "layers/expand/expand.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/broadcast.h"

namespace softneuro {

#define SN_ROUTINES "layers/expand/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_expand(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"shape"});
  expect_no_weights(layer);
  expect_inputs(in, 1);
  const std::vector<int64_t>& dims = layer.attrs.integers("shape");
  const Shape shape{std::span<const int64_t>(expect_list("shape", dims, dims.size(), 0))};
  if (broadcast_shape(in[0].shape, shape) != shape) {
    throw Error("shape " + in[0].shape.str() + " does not expand to " + shape.str());
  }
  TensorDesc out = in[0];
  out.shape = shape;
  return out;
}

const LayerDef& expand_layer() {
  static constexpr LayerDef def{"expand", infer_expand, one_output<expand_reference>, collect_routines, Takes::moving};
  return def;
}

}  // namespace softneuro
