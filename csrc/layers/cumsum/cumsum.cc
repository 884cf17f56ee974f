#include "layers/cumsum/cumsum.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/cumsum/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_cumsum(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"axis"});
  expect_no_weights(layer);
  expect_inputs(in, 1);
  expect_axis("axis", layer.attrs.integer("axis"), in[0].shape.rank());
  return desc_of(in[0].shape, integer_type(in[0]));
}

const LayerDef& cumsum_layer() {
  static constexpr LayerDef def{"cumsum", infer_cumsum, one_output<cumsum_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
