#include "layers/adapt/adapt.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/adapt/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_adapt(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_no_weights(layer);
  expect_inputs(in, 1);
  return in[0];
}

const LayerDef& adapt_layer() {
  static constexpr LayerDef def{"adapt", infer_adapt, one_output<adapt_reference>, collect_routines, Takes::moving};
  return def;
}

}  // namespace softneuro
