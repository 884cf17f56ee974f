#include "layers/upsample/upsample.h"

#include <algorithm>
#include <cmath>

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/upsample/routines.inc"
#include "layers/contract/collect.inc"

UpsampleParams upsample_params(const Layer& layer) {
  const Attrs& attrs = layer.attrs;
  attrs.expect_only({"mode", "output_size", "align_corners", "scale_h", "scale_w", "shares_first", "outside"});
  UpsampleParams p{};
  const std::string& mode = attrs.text("mode");
  if (mode != "nearest" && mode != "bilinear") throw Error("mode must be nearest or bilinear, got \"" + mode + "\"");
  p.bilinear = mode == "bilinear";
  p.align_corners = attrs.flag("align_corners", false);
  if (p.align_corners && !p.bilinear) throw Error("align_corners is for bilinear");
  p.shares_first = attrs.flag("shares_first", false);
  p.outside = static_cast<float>(attrs.real("outside", 0));
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

static UpsampleAxis given_axis(const ConstantData& weight) {
  const ConstantData::Values values = weight.values();
  UpsampleAxis result;
  for (int64_t i = 0; i < weight.shape()[0]; ++i) {
    const float* tap = values.get() + 4 * i;
    result.taps.push_back({static_cast<int64_t>(tap[0]), static_cast<int64_t>(tap[1]), tap[2], tap[3]});
  }
  return result;
}

UpsampleAxis upsample_axis(const Layer& layer, int axis, int64_t size) {
  if (const Constant* given = layer.find_weight(axis == 0 ? "rows" : "columns")) return given_axis(**given);
  const UpsampleParams params = upsample_params(layer);
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

// Neighbours that a front door gives are whole numbers within the image, or both -1.
static void check_axis(const Layer& layer, const UpsampleParams& p, int axis, int64_t size) {
  const char* const role = axis == 0 ? "rows" : "columns";
  const Constant* weight = layer.find_weight(role);
  if (weight == nullptr) return;
  const Shape wanted{p.output_size[static_cast<size_t>(axis)], 4};
  if ((*weight)->shape() != wanted) {
    throw Error(std::string(role) + " has shape " + (*weight)->shape().str() + ", not " + wanted.str());
  }
  const ConstantData::Values values = (*weight)->values();
  for (int64_t i = 0; i < wanted[0]; ++i) {
    const float first = values.get()[4 * i], second = values.get()[4 * i + 1];
    const bool outside = first == -1 && second == -1 && p.bilinear;
    const auto inside = [&](float at) { return at >= 0 && at < static_cast<float>(size) && at == std::floor(at); };
    if (outside || (inside(first) && inside(second))) continue;
    throw Error(std::string(role) + "[" + std::to_string(i) + "] mixes " + std::to_string(first) + " and " +
                std::to_string(second) + " of " + std::to_string(size));
  }
}

static OutputDescs infer_upsample(const Layer& layer, std::span<const TensorDesc> in) {
  for (const auto& [role, weight] : layer.weights) {
    if (role != "rows" && role != "columns") throw Error("takes no weight '" + role + "'");
  }
  expect_inputs(in, 1);
  expect_rank(in[0].shape, 4);
  if (in[0].shape[2] == 0 || in[0].shape[3] == 0) throw Error("the image is empty: " + in[0].shape.str());
  const UpsampleParams p = upsample_params(layer);
  check_axis(layer, p, 0, in[0].shape[2]);
  check_axis(layer, p, 1, in[0].shape[3]);
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
