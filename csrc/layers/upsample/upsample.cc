#include "layers/upsample/upsample.h"

#include <algorithm>
#include <cmath>

#include "layers/routine.h"
#include "layers/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/upsample/routines.inc"
#include "layers/collect.inc"

UpsampleParams upsample_params(const Layer& layer) {
  const Attrs& attrs = layer.attrs;
  attrs.expect_only({"mode", "output_size", "align_corners", "scale_h", "scale_w"});
  UpsampleParams p{};
  const std::string& mode = attrs.text("mode");
  if (mode != "nearest" && mode != "bilinear") throw Error("mode must be nearest or bilinear, got \"" + mode + "\"");
  p.bilinear = mode == "bilinear";
  p.align_corners = attrs.flag("align_corners", false);
  if (p.align_corners && !p.bilinear) throw Error("align_corners is for bilinear");
  p.output_size = fixed_list<2>("output_size", attrs.integers("output_size"), 1);
  p.scale = {attrs.real("scale_h", 0), attrs.real("scale_w", 0)};
  for (double scale : p.scale) {
    if (!(scale >= 0) || std::isinf(scale)) throw Error("scale_h and scale_w must be positive and finite");
  }
  return p;
}

static UpsampleAxis::Tap nearest_tap(float step, int64_t i, int64_t size, int64_t outputs) {
  // The host does not compute where it need not, not even with a scale that would give others.
  int64_t source;
  if (outputs == size) {
    source = i;
  } else if (outputs == 2 * size) {
    source = i / 2;
  } else {
    source = static_cast<int64_t>(std::floor(static_cast<float>(i) * step));
  }
  source = std::min(source, size - 1);
  return {source, source, 1, 0};
}

static UpsampleAxis::Tap bilinear_tap(float step, int64_t i, int64_t size, int64_t outputs, bool align_corners) {
  if (outputs == size) return {i, i, 1, 0};
  const float at = static_cast<float>(i);
  const float real = align_corners ? step * at : std::max(step * (at + 0.5f) - 0.5f, 0.0f);
  const int64_t first = std::min(static_cast<int64_t>(std::floor(real)), size - 1);
  const float share = std::clamp(real - static_cast<float>(first), 0.0f, 1.0f);
  return {first, std::min(first + 1, size - 1), 1.0f - share, share};
}

UpsampleAxis upsample_axis(const UpsampleParams& params, int axis, int64_t size) {
  const auto a = static_cast<size_t>(axis);
  const int64_t outputs = params.output_size[a];
  float step = static_cast<float>(size) / static_cast<float>(outputs);
  if (params.align_corners) {
    step = outputs > 1 ? static_cast<float>(size - 1) / static_cast<float>(outputs - 1) : 0.0f;
  } else if (params.scale[a] > 0) {
    step = static_cast<float>(1.0 / params.scale[a]);
  }
  UpsampleAxis result;
  for (int64_t i = 0; i < outputs; ++i) {
    result.taps.push_back(params.bilinear ? bilinear_tap(step, i, size, outputs, params.align_corners)
                                          : nearest_tap(step, i, size, outputs));
  }
  return result;
}

static OutputDescs infer_upsample(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 1);
  expect_rank(in[0].shape, 4);
  if (in[0].shape[2] == 0 || in[0].shape[3] == 0) throw Error("the image is empty: " + in[0].shape.str());
  const UpsampleParams p = upsample_params(layer);
  TensorDesc out{Shape{in[0].shape[0], in[0].shape[1], p.output_size[0], p.output_size[1]}};
  if (!p.bilinear) out.quantization = in[0].quantization;
  return out;
}

const LayerDef& upsample_layer() {
  static constexpr LayerDef def{"upsample", infer_upsample, one_output<upsample_reference>, collect_routines,
                                Takes::selecting};
  return def;
}

}  // namespace softneuro
