#include "layers/rms_norm/rms_norm.h"

#include "layers/layer_norm/layer_norm.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/rms_norm/routines.inc"
#include "layers/contract/collect.inc"

NormalizedRows rms_norm_params(const Layer& layer, const TensorDesc& x) {
  NormalizedRows rows = last_axes_params(layer, x, {"weight"});
  rows.about_zero = true;
  return rows;
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  rms_norm_params(layer, x);
  return x;
}

void reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  normalize_reference(layer, rms_norm_params(layer, {out.shape}), in[0].data, out.data);
}

}  // namespace

const LayerDef& rms_norm_layer() {
  static const LayerDef def{"rms_norm", infer, one_output<reference>, collect_routines};
  return def;
}

}  // namespace softneuro
