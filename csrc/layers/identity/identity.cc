#include "layers/identity/identity.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/identity/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_identity(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_no_weights(layer);
  expect_inputs(in, 1);
  return in[0];
}

const LayerDef& identity_layer() {
  static constexpr LayerDef def{"identity", infer_identity, one_output<identity_reference>, collect_routines,
                                Takes::moving};
  return def;
}

}  // namespace softneuro
