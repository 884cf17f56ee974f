// Padding, resizing and rearrangement of pixels.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "layers/upsample/upsample.h"
#include "providers/ort/ops/ops.h"

namespace softneuro::ort {
namespace {

std::string_view pad_mode(const std::string& mode) {
  if (mode == "constant") return "constant";
  if (mode == "reflect") return "reflect";
  return mode == "edge" ? "replicate" : "";
}

Refusal check_pad(const OpView& view) {
  const std::string mode = view.node().text("mode", "constant");
  if (pad_mode(mode).empty()) return "mode '" + mode + "' is not supported";
  if (view.node().since_version < 11) return "it is older than opset 11";
  return view.rank(0) > 0 ? known_from(view, 1) : Refusal("its input is a scalar");
}

void convert_pad(Lowering& low) {
  const int rank = low.rank(0);
  const std::vector<int64_t> given = low.integers(1, "pads");
  std::vector<int64_t> axes, pads(static_cast<size_t>(2 * rank), 0);
  if (low.has(3)) {
    for (const int64_t axis : low.known(3).integers()) axes.push_back(low.axis(axis, rank));
  } else {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (given.size() != 2 * axes.size()) throw Error("there are " + std::to_string(given.size()) + " pads");
  for (size_t i = 0; i < axes.size(); ++i) {
    pads[static_cast<size_t>(axes[i])] = given[i];
    pads[static_cast<size_t>(axes[i] + rank)] = given[axes.size() + i];
  }
  const double value = low.has(2) ? decimal(static_cast<float>(low.known(2).number())) : 0.0;
  const std::string mode(pad_mode(low.node().text("mode", "constant")));
  low.set(low.add("pad", {low.blob(0)}, {{"mode", mode}, {"pads", pads}, {"value", value}}));
}

Refusal check_resize(const OpView& view) {
  const OpNode& node = view.node();
  if (node.since_version < 11) return "it is older than opset 11";
  if (Refusal no = rank_is(view, {4}); !no.accepted()) return no;
  const std::string mode = node.text("mode", "nearest");
  const std::string coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  if (mode != "nearest" && mode != "linear") return "mode '" + mode + "' is not supported";
  if (mode == "linear" && view.input(0).grid) return "it interpolates between bytes";
  if (node.integer("antialias", 0) != 0) return "antialias is not supported";
  if (node.integer("exclude_outside", 0) != 0) return "exclude_outside is not supported";
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") return "keep_aspect_ratio_policy '" + policy + "' is not supported";
  const bool known =
      mode == "linear"
          ? coordinates == "half_pixel" || coordinates == "pytorch_half_pixel" || coordinates == "align_corners"
          : coordinates == "half_pixel" || coordinates == "asymmetric" || coordinates == "pytorch_half_pixel";
  if (!known) return "coordinate_transformation_mode '" + coordinates + "' is not supported for " + mode;
  return known_from(view, 1);
}

// The source of output `i` by ONNX's rules, of which rounding to the nearest is one.
int64_t nearest_source(const OpNode& node, int64_t i, int64_t in, int64_t out, float scale) {
  if (scale == 1) return i;
  const std::string coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = node.text("nearest_mode", "round_prefer_floor");
  const auto at = static_cast<float>(i);
  float source = (at + 0.5F) / scale - 0.5F;
  if (coordinates == "asymmetric") source = at / scale;
  if (coordinates == "pytorch_half_pixel" && out == 1) source = 0;
  const bool down = rounding == "floor" || (rounding == "round_prefer_floor" && source == std::floor(source) + 0.5F);
  const float nearest = down ? std::floor(source) : rounding == "ceil" ? std::ceil(source) : std::round(source);
  return std::clamp<int64_t>(static_cast<int64_t>(nearest), 0, in - 1);
}

// An axis of the layer must do what ONNX says. `scale`: as given, 0 if the size is.
void check_axis(const OpNode& node, const UpsampleParams& params, int axis, int64_t in, double scale) {
  const int64_t out = params.output_size[static_cast<size_t>(axis)];
  const float used = scale > 0 ? static_cast<float>(scale) : static_cast<float>(out) / static_cast<float>(in);
  bool agrees = true;
  if (params.bilinear) {
    agrees = out != in || used == 1 || params.align_corners;  // a size that stays is no work for the layer
  } else {
    const UpsampleAxis own = upsample_axis(params, axis, in);
    for (int64_t i = 0; agrees && i < out; ++i) {
      agrees = own.taps[static_cast<size_t>(i)].first == nearest_source(node, i, in, out, used);
    }
  }
  if (agrees) return;
  throw Error("resizing " + std::to_string(in) + " to " + std::to_string(out) + " by " +
              exact_number(static_cast<double>(used)) +
              (params.bilinear ? "" : " with nearest_mode '" + node.text("nearest_mode", "round_prefer_floor") + "'") +
              " is not supported");
}

void convert_resize(Lowering& low) {
  const OpNode& node = low.node();
  const Shape in = low.shape(0);
  std::vector<int64_t> axes = node.integers("axes", {0, 1, 2, 3});
  std::vector<double> scales(4, 0);  // 0: what the sizes make it
  Shape out = in;
  if (low.has(3) && low.known(3).elements() > 0) {
    const std::vector<int64_t> sizes = low.known(3).integers();
    if (sizes.size() != axes.size()) throw Error("there are " + std::to_string(sizes.size()) + " sizes");
    for (size_t i = 0; i < axes.size(); ++i) out[static_cast<int>(low.axis(axes[i], 4))] = sizes[i];
  } else {
    const HostTensor& given = low.known(2);
    if (given.type != DType::float32 || given.elements() != static_cast<int64_t>(axes.size())) {
      throw Error("there are " + std::to_string(given.elements()) + " scales");
    }
    const std::vector<float> factors = given.reals();
    scales.assign(4, 1);  // of axes that are not named, too
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = low.axis(axes[i], 4);
      const float scale = factors[i];
      scales[static_cast<size_t>(axis)] = decimal(scale);
      out[static_cast<int>(axis)] =
          static_cast<int64_t>(std::floor(static_cast<float>(in[static_cast<int>(axis)]) * scale));
    }
  }
  if (out[0] != in[0] || out[1] != in[1]) throw Error("it resizes the batch or the channels");
  const bool linear = node.text("mode", "nearest") == "linear";
  const std::string coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  if (linear && coordinates != "align_corners" && (out[2] == 1 || out[3] == 1) && coordinates == "pytorch_half_pixel") {
    throw Error("a single pixel is not supported with pytorch_half_pixel");
  }
  Layer layer;
  layer.type = "upsample";
  layer.attrs.set("mode", linear ? "bilinear" : "nearest");
  layer.attrs.set("output_size", std::vector<int64_t>{out[2], out[3]});
  if (linear && coordinates == "align_corners") {
    layer.attrs.set("align_corners", int64_t{1});
  } else if (scales[2] > 0 && scales[3] > 0) {
    layer.attrs.set("scale_h", scales[2]);
    layer.attrs.set("scale_w", scales[3]);
  }
  const UpsampleParams params = upsample_params(layer);
  check_axis(node, params, 0, in[2], scales[2]);
  check_axis(node, params, 1, in[3], scales[3]);
  low.set(low.add(std::move(layer), {low.blob(0)}));
}

Refusal check_blocks(const OpView& view) {
  const std::string mode = view.node().text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return "mode '" + mode + "' is unknown";
  return rank_is(view, {4});
}

void convert_depth_to_space(Lowering& low) {
  const int64_t b = low.node().integer("blocksize", 1);
  const Shape in = low.shape(0);
  if (low.node().text("mode", "DCR") == "CRD") {
    return low.set(low.add("pixel_shuffle", {low.blob(0)}, {{"factor", b}}));
  }
  if (b < 1 || in[1] % (b * b) != 0) throw Error("blocksize " + std::to_string(b) + " does not fit " + in.str());
  const int64_t channels = in[1] / (b * b);
  const int split = low.reshape(low.blob(0), Shape{in[0], b, b, channels, in[2], in[3]});
  const int moved = low.add("transpose", {split}, {{"perm", std::vector<int64_t>{0, 3, 4, 1, 5, 2}}});
  low.set(low.reshape(moved, Shape{in[0], channels, in[2] * b, in[3] * b}));
}

void convert_space_to_depth(Lowering& low) {
  const int64_t b = low.node().integer("blocksize", 1);
  const Shape in = low.shape(0);
  if (b < 1 || in[2] % b != 0 || in[3] % b != 0) {
    throw Error("blocksize " + std::to_string(b) + " does not fit " + in.str());
  }
  const bool channels_first = low.node().text("mode", "DCR") == "CRD";                        // since opset 28
  const std::vector<int64_t> perm = channels_first ? std::vector<int64_t>{0, 1, 3, 5, 2, 4}   // N C b b H W
                                                   : std::vector<int64_t>{0, 3, 5, 1, 2, 4};  // N b b C H W
  const int split = low.reshape(low.blob(0), Shape{in[0], in[1], in[2] / b, b, in[3] / b, b});
  const int moved = low.add("transpose", {split}, {{"perm", perm}});
  low.set(low.reshape(moved, Shape{in[0], in[1] * b * b, in[2] / b, in[3] / b}));
}

constexpr OpEntry entries[] = {
    {"Pad", check_pad, convert_pad, true},
    {"Resize", check_resize, convert_resize, false, Holds::quantized},
    {"DepthToSpace", check_blocks, convert_depth_to_space, true, Holds::quantized},
    {"SpaceToDepth", check_blocks, convert_space_to_depth, true, Holds::quantized},
};

}  // namespace

std::span<const OpEntry> resample_ops() { return entries; }

}  // namespace softneuro::ort
