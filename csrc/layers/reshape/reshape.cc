#include "layers/reshape/reshape.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/reshape/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_reshape(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"shape"});
  expect_no_weights(layer);
  expect_inputs(in, 1);
  const std::vector<int64_t>& dims = layer.attrs.integers("shape");
  const Shape shape{std::span<const int64_t>(expect_list("shape", dims, dims.size(), 0))};
  if (shape.elements() != in[0].shape.elements()) {
    throw Error("shape " + list_text(dims) + " does not hold the " + std::to_string(in[0].shape.elements()) +
                " elements of " + in[0].shape.str());
  }
  TensorDesc out = in[0];
  out.shape = shape;
  return out;
}

const LayerDef& reshape_layer() {
  static constexpr LayerDef def{"reshape", infer_reshape, one_output<reshape_reference>, collect_routines,
                                Takes::moving};
  return def;
}

}  // namespace softneuro
