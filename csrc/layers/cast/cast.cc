#include "layers/cast/cast.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/cast/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_cast(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_no_weights(layer);
  expect_inputs(in, 1);
  return TensorDesc{in[0].shape};
}

const LayerDef& cast_layer() {
  static constexpr LayerDef def{"cast", infer_cast, one_output<cast_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
