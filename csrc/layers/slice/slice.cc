#include "layers/slice/slice.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/slice/routines.inc"
#include "layers/contract/collect.inc"

SliceParams slice_params(const Layer& layer, const Shape& in) {
  const Attrs& attrs = layer.attrs;
  attrs.expect_only({"axis", "start", "end", "step"});
  const int64_t axis = attrs.integer("axis");
  expect_axis("axis", axis, in.rank());
  const SliceParams p{static_cast<int>(axis), attrs.integer("start"), attrs.integer("end"), attrs.integer("step", 1)};
  if (p.start < 0 || p.start > p.end || p.end > in[p.axis]) {
    throw Error("[" + std::to_string(p.start) + ", " + std::to_string(p.end) + ") is outside axis " +
                std::to_string(axis) + " of " + in.str());
  }
  if (p.step < 1) throw Error("step must be positive, got " + std::to_string(p.step));
  return p;
}

static OutputDescs infer_slice(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 1);
  const SliceParams p = slice_params(layer, in[0].shape);
  TensorDesc out = in[0];
  out.shape[p.axis] = p.end == p.start ? 0 : (p.end - p.start - 1) / p.step + 1;
  return out;
}

const LayerDef& slice_layer() {
  static constexpr LayerDef def{"slice", infer_slice, one_output<slice_reference>, collect_routines, Takes::moving};
  return def;
}

}  // namespace softneuro
