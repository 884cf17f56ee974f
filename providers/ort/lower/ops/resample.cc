// Padding, resizing and rearrangement of pixels.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "layers/upsample/upsample.h"
#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/lower/quantized_values.h"
#include "providers/ort/lower/resize_taps.h"

namespace softneuro::ort {
namespace {

std::string_view pad_mode(const std::string& mode) {
  if (mode == "constant") return "constant";
  if (mode == "reflect" || mode == "wrap") return mode == "wrap" ? "wrap" : "reflect";
  return mode == "edge" ? "replicate" : "";
}

Refusal check_pad(const OpView& view) {
  const std::string mode = view.node().text("mode", "constant");
  if (pad_mode(mode).empty()) return "mode '" + mode + "' is not supported";
  if (view.node().since_version < 11) return "it is older than opset 11";
  return view.rank(0) > 0 ? known_from(view, 1) : Refusal("its input is a scalar");
}

// The host wraps what is left of an axis that it has cropped.
void check_wrapped(const Shape& in, const std::vector<int64_t>& pads) {
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] < 0 || pads[i] > in[static_cast<int>(i) % in.rank()]) throw Error("it crops, or goes around twice");
  }
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
  if (mode == "wrap") check_wrapped(low.shape(0), pads);
  low.set(low.add("pad", {low.blob(0)}, {{"mode", mode}, {"pads", pads}, {"value", value}}));
}

Refusal check_resize(const OpView& view) {
  const HostNode& node = view.node();
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
  if (!is_coordinate_mode(coordinates)) {
    return "coordinate_transformation_mode '" + coordinates + "' is unknown";
  }
  return known_from(view, 1);
}

// What becomes of the four axes.
struct Resizing {
  Shape out;
  std::vector<float> scales;
  bool by_sizes;
};

Resizing resizing_of(Lowering& low) {
  const Shape in = low.shape(0);
  const std::vector<int64_t> axes = low.node().integers("axes", {0, 1, 2, 3});
  Resizing made{in, std::vector<float>(4, 1), low.has(3) && low.known(3).elements() > 0};
  const HostTensor& given = low.known(made.by_sizes ? 3 : 2);
  if (given.elements() != static_cast<int64_t>(axes.size()) || (!made.by_sizes && given.type != DType::float32)) {
    throw Error("there are " + std::to_string(given.elements()) + (made.by_sizes ? " sizes" : " scales"));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<int>(low.axis(axes[i], 4));
    const auto size = static_cast<float>(in[axis]);
    float& scale = made.scales[static_cast<size_t>(axis)];
    if (made.by_sizes) {
      made.out[axis] = given.integers()[i];
      scale = static_cast<float>(made.out[axis]) / size;
    } else {
      scale = given.reals()[i];
      made.out[axis] = static_cast<int64_t>(std::floor(size * scale));
    }
    if (!(scale > 0) || !std::isfinite(scale) || made.out[axis] < 1)
      throw Error("it leaves nothing of axis " + std::to_string(axis));
  }
  if (made.scales[0] != 1 || made.scales[1] != 1) throw Error("it resizes the batch or the channels");
  return made;
}

// Beginning and end of the part of an axis that is resized, as shares of it.
std::pair<float, float> region_of(Lowering& low, int axis) {
  if (low.node().text("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize") return {0, 1};
  const std::vector<float> region = low.known(1).reals();
  const std::vector<int64_t> axes = low.node().integers("axes", {0, 1, 2, 3});
  if (region.size() != 2 * axes.size()) throw Error("its roi has " + std::to_string(region.size()) + " numbers");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (low.axis(axes[i], 4) == axis) return {region[i], region[axes.size() + i]};
  }
  return {0, 1};
}

// Where the host takes the outputs of an axis from.
UpsampleAxis taps_of(Lowering& low, const Resizing& resizing, int axis) {
  const HostNode& node = low.node();
  const bool linear = node.text("mode", "nearest") == "linear";
  const auto [begin, end] = region_of(low, axis);
  const ResizeAxis along{node.text("coordinate_transformation_mode", "half_pixel"),
                         low.shape(0)[axis],
                         resizing.out[axis],
                         resizing.scales[static_cast<size_t>(axis)],
                         begin,
                         end};
  const std::string rounding = node.text("nearest_mode", "round_prefer_floor");
  UpsampleAxis made;
  for (int64_t i = 0; i < along.out; ++i) {
    made.taps.push_back(linear ? linear_tap(along, i) : nearest_tap(along, i, rounding));
    if (!linear && made.taps.back().outside()) throw Error("its nearest pixels lie outside the image");
  }
  return made;
}

// Whether results are the same. digits: to the last digit, for which it matters how one pixel is shared with itself.
bool agree(const UpsampleAxis& a, const UpsampleAxis& b, bool digits) {
  return std::equal(a.taps.begin(), a.taps.end(), b.taps.begin(), b.taps.end(), [&](const auto& x, const auto& y) {
    const bool shares = x.first_share == y.first_share && x.second_share == y.second_share;
    return x.first == y.first && x.second == y.second && (shares || (x.first == x.second && !digits));
  });
}

Constant constant_of(const UpsampleAxis& axis) {
  std::vector<float> numbers;
  for (const auto& tap : axis.taps) {
    numbers.insert(numbers.end(),
                   {static_cast<float>(tap.first), static_cast<float>(tap.second), tap.first_share, tap.second_share});
  }
  return constant_from(Shape{static_cast<int64_t>(axis.taps.size()), 4}, std::move(numbers));
}

void convert_resize(Lowering& low) {
  const HostNode& node = low.node();
  const Shape in = low.shape(0);
  const Resizing resizing = resizing_of(low);
  if (resizing.out == in) return low.set(low.blob(0));  // nor does the host do anything
  const bool linear = node.text("mode", "nearest") == "linear";
  Layer layer;
  layer.type = "upsample";
  layer.attrs.set("mode", linear ? "bilinear" : "nearest");
  layer.attrs.set("output_size", std::vector<int64_t>{resizing.out[2], resizing.out[3]});
  if (linear && node.text("coordinate_transformation_mode", "half_pixel") == "align_corners") {
    layer.attrs.set("align_corners", int64_t{1});
  } else if (!resizing.by_sizes) {
    layer.attrs.set("scale_h", decimal(resizing.scales[2]));
    layer.attrs.set("scale_w", decimal(resizing.scales[3]));
  }
  // A last digit decides where results are rounded to steps.
  const bool digits = linear && is_quantized(low.ops());
  if (digits) layer.attrs.set("shares_first", int64_t{1});
  const UpsampleAxis rows = taps_of(low, resizing, 2), columns = taps_of(low, resizing, 3);
  if (!agree(rows, upsample_axis(layer, 0, in[2]), digits) || !agree(columns, upsample_axis(layer, 1, in[3]), digits)) {
    for (const char* name : {"align_corners", "scale_h", "scale_w"}) layer.attrs.erase(name);
    if (linear) layer.attrs.set("outside", decimal(node.real("extrapolation_value", 0)));
    layer.set_weight("rows", constant_of(rows));
    layer.set_weight("columns", constant_of(columns));
  }
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

constexpr OpEntry resample_entries[] = {
    {"Pad", check_pad, convert_pad, true},
    {"Resize", check_resize, convert_resize, false, Holds::quantized},
    {"DepthToSpace", check_blocks, convert_depth_to_space, true, Holds::quantized},
    {"SpaceToDepth", check_blocks, convert_space_to_depth, true, Holds::quantized},
};

}  // namespace

std::span<const OpEntry> resample_ops() { return resample_entries; }

}  // namespace softneuro::ort
