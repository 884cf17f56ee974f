// Padding, resizing and rearrangement of pixels.
#include <cmath>

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

// Nearest: the layer's rule is floor(i / scale). ONNX's others agree with it where an image grows by an integer.
void check_nearest(const OpNode& node, int64_t in, int64_t out) {
  const std::string rounding = node.text("nearest_mode", "round_prefer_floor");
  const bool centred = node.text("coordinate_transformation_mode", "half_pixel") != "asymmetric";
  if (!centred && rounding == "floor") return;
  const bool grows = in > 0 && out % in == 0;
  if (grows && (out == in || (centred && rounding.starts_with("round_prefer")))) return;
  throw Error("resizing " + std::to_string(in) + " to " + std::to_string(out) + " with nearest_mode '" + rounding +
              "' is not supported");
}

void convert_resize(Lowering& low) {
  const OpNode& node = low.node();
  const Shape in = low.shape(0);
  std::vector<int64_t> axes = node.integers("axes", {0, 1, 2, 3});
  std::vector<double> scales(4, 0);
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
  if (!linear) {
    check_nearest(node, in[2], out[2]);
    check_nearest(node, in[3], out[3]);
  }
  const std::string coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  if (linear && coordinates != "align_corners" && (out[2] == 1 || out[3] == 1) && coordinates == "pytorch_half_pixel") {
    throw Error("a single pixel is not supported with pytorch_half_pixel");
  }
  const std::string mode = linear ? "bilinear" : "nearest";
  const std::vector<int64_t> size{out[2], out[3]};
  if (linear && coordinates == "align_corners") {
    return low.set(
        low.add("upsample", {low.blob(0)}, {{"mode", mode}, {"output_size", size}, {"align_corners", int64_t{1}}}));
  }
  if (scales[2] > 0 && scales[3] > 0) {
    return low.set(low.add("upsample", {low.blob(0)},
                           {{"mode", mode}, {"output_size", size}, {"scale_h", scales[2]}, {"scale_w", scales[3]}}));
  }
  low.set(low.add("upsample", {low.blob(0)}, {{"mode", mode}, {"output_size", size}}));
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
    {"Resize", check_resize, convert_resize},
    {"DepthToSpace", check_blocks, convert_depth_to_space, true},
    {"SpaceToDepth", check_blocks, convert_space_to_depth, true},
};

}  // namespace

std::span<const OpEntry> resample_ops() { return entries; }

}  // namespace softneuro::ort
