#include "layers/concat/concat.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/concat/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_concat(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"axis"});
  expect_no_weights(layer);
  if (in.empty()) throw Error("wants at least one input");
  TensorDesc out = in[0];
  const int64_t axis = layer.attrs.integer("axis");
  expect_axis("axis", axis, out.shape.rank());
  for (const TensorDesc& desc : in.subspan(1)) {
    bool fits = desc.shape.rank() == out.shape.rank();
    for (int i = 0; fits && i < out.shape.rank(); ++i) fits = i == axis || desc.shape[i] == out.shape[i];
    if (!fits) {
      throw Error("shapes " + in[0].shape.str() + " and " + desc.shape.str() + " differ beside axis " +
                  std::to_string(axis));
    }
    out.shape[static_cast<int>(axis)] += desc.shape[static_cast<int>(axis)];
    if (!same_quantization(out, desc)) out.quantization = nullptr;  // as reals they may still lie side by side
  }
  return out;
}

const LayerDef& concat_layer() {
  static constexpr LayerDef def{"concat", infer_concat, one_output<concat_reference>, collect_routines, Takes::moving};
  return def;
}

}  // namespace softneuro
