#include "layers/cast/cast.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/cast/routines.inc"
#include "layers/contract/collect.inc"

DType cast_type(const Layer& layer) {
  layer.attrs.expect_only({"to"});
  if (layer.attrs.find("to") == nullptr) return DType::float32;
  const std::string& to = layer.attrs.text("to");
  for (const DType dtype : {DType::int64, DType::int32, DType::boolean}) {
    if (to == dtype_name(dtype)) return dtype;
  }
  throw Error("there is no cast to '" + to + "'", {}, "known are int64, int32, bool");
}

static OutputDescs infer_cast(const Layer& layer, std::span<const TensorDesc> in) {
  const DType to = cast_type(layer);
  expect_no_weights(layer);
  expect_inputs(in, 1);
  return desc_of(in[0].shape, to);
}

const LayerDef& cast_layer() {
  static constexpr LayerDef def{"cast", infer_cast, one_output<cast_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
