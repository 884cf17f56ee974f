#include "layers/where/where.h"

#include <algorithm>

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/broadcast.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/where/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_where(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_no_weights(layer);
  expect_inputs(in, 3);
  if (in[0].kind != ValueKind::boolean) throw Error("the first input, " + in[0].str() + ", is not of booleans");
  expect_one_kind(in.subspan(1));
  TensorDesc out = in[1];
  out.shape = broadcast_shape(in[0].shape, broadcast_shape(in[1].shape, in[2].shape));
  out.least = std::min(out.least, in[2].least), out.most = std::max(out.most, in[2].most);
  out.quantization = nullptr;
  return out;
}

const LayerDef& where_layer() {
  static constexpr LayerDef def{"where", infer_where, one_output<where_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
