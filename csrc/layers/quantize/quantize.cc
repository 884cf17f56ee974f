#include "layers/quantize/quantize.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/quantize/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_quantize(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_no_weights(layer);
  expect_inputs(in, 1);
  if (layer.post.quantize == nullptr) throw Error("has no scale", {}, "give the post-op quantize");
  return in[0];
}

const LayerDef& quantize_layer() {
  static constexpr LayerDef def{"quantize", infer_quantize, one_output<quantize_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
