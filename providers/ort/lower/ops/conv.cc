// Convolutions.
#include <algorithm>

#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

std::vector<int64_t> spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

Lowering::Weights conv_weights(Lowering& low) {
  Lowering::Weights weights{{"weight", low.weight(1)}};
  if (low.has(2)) weights.emplace_back("bias", low.weight(2));
  return weights;
}

// Attributes that say a thing twice.
Refusal check_attributes(const OpView& view) {
  if (Refusal no = check_auto_pad(view); !no.accepted()) return no;
  const bool automatic = view.node().text("auto_pad", "NOTSET") != "NOTSET";
  if (automatic && view.node().find("pads") != nullptr) return "it has pads beside auto_pad";
  const auto kernel = view.node().integers("kernel_shape");
  if (kernel.empty() || !view.input(1).has_shape) return {};
  const auto& dims = view.input(1).dims;
  if (dims.size() == kernel.size() + 2 && std::equal(kernel.begin(), kernel.end(), dims.begin() + 2)) return {};
  return "its kernel_shape is not its weight's";
}

Refusal check_conv(const OpView& view) {
  if (Refusal no = check_windows(view); !no.accepted()) return no;
  return known_from(view, 1);
}

void convert_conv(Lowering& low) {
  const Windows w = windows_of(low.node(), spatial(low.shape(1)), spatial(low.shape(0)));
  low.set(low.add(
      low.rank(0) == 4 ? "conv2d" : "conv1d", {low.blob(0)},
      {{"stride", w.stride}, {"padding", w.pads}, {"dilation", w.dilation}, {"groups", low.node().integer("group", 1)}},
      conv_weights(low)));
}

Refusal check_transposed(const OpView& view) {
  if (Refusal no = rank_is(view, {4}); !no.accepted()) return no;
  if (Refusal no = check_attributes(view); !no.accepted()) return no;
  const auto stride = view.node().integers("strides", {1, 1}), dilation = view.node().integers("dilations", {1, 1});
  const auto extra = view.node().integers("output_padding", {0, 0});
  if (stride.size() != 2 || dilation.size() != 2 || extra.size() != 2) return "its attributes do not fit two axes";
  for (size_t i = 0; i < 2; ++i) {
    if (extra[i] >= stride[i]) return "output_padding is not smaller than the stride";
  }
  return known_from(view, 1);
}

// The whole result is computed unpadded where the two sides of an axis are cropped differently, then cropped.
void convert_transposed(Lowering& low) {
  const HostNode& node = low.node();
  const Shape in = low.shape(0), weight = low.shape(1);
  const auto stride = node.integers("strides", {1, 1}), dilation = node.integers("dilations", {1, 1});
  auto extra = node.integers("output_padding", {0, 0});
  std::vector<int64_t> pads = node.integers("pads", {0, 0, 0, 0});
  const std::vector<int64_t> wanted = node.integers("output_shape");
  const std::string mode = node.text("auto_pad", "NOTSET");
  if (pads.size() != 4) throw Error("pads do not fit two spatial axes");
  if (mode == "VALID") pads.assign(4, 0);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t whole = (in[static_cast<int>(i) + 2] - 1) * stride[i] + extra[i] +
                          dilation[i] * (weight[static_cast<int>(i) + 2] - 1) + 1;
    int64_t size = whole - pads[i] - pads[i + 2];
    if (!wanted.empty()) {
      size = wanted[wanted.size() - 2 + i];
    } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      size = in[static_cast<int>(i) + 2] * stride[i];
    } else {
      continue;
    }
    const int64_t total = whole - size;
    if (total < 0) throw Error("output_shape is larger than the whole result");
    const int64_t less = total / 2, more = total - less;
    pads[i] = mode == "SAME_UPPER" ? less : more;
    pads[i + 2] = mode == "SAME_UPPER" ? more : less;
  }
  const bool even = pads[0] == pads[2] && pads[1] == pads[3] && *std::min_element(pads.begin(), pads.end()) >= 0;
  const int blob = low.add("conv_transpose2d", {low.blob(0)},
                           {{"stride", stride},
                            {"padding", even ? std::vector<int64_t>{pads[0], pads[1]} : std::vector<int64_t>{0, 0}},
                            {"output_padding", extra},
                            {"dilation", dilation},
                            {"groups", node.integer("group", 1)}},
                           conv_weights(low));
  if (even) return low.set(blob);
  const std::vector<int64_t> crop{0, 0, -pads[0], -pads[1], 0, 0, -pads[2], -pads[3]};
  low.set(low.add("pad", {blob}, {{"mode", "constant"}, {"pads", crop}}));
}

constexpr OpEntry conv_entries[] = {
    {"Conv", check_conv, convert_conv},
    {"ConvTranspose", check_transposed, convert_transposed},
};

}  // namespace

Refusal check_windows(const OpView& view) {
  if (Refusal no = rank_is(view, {3, 4}); !no.accepted()) return no;
  if (Refusal no = check_attributes(view); !no.accepted()) return no;
  if (Refusal no = same_undilated(view); !no.accepted()) return no;
  for (const int64_t pad : view.node().integers("pads")) {
    if (pad < 0) return "its pads are negative";
  }
  return {};
}

int convolved_bytes(Lowering& low, Lowering::Weights weights) {
  const Shape in = low.shape(0);
  const bool flat = in.rank() == 3;  // an image of height one
  Windows w = windows_of(low.node(), spatial(low.shape(1)), spatial(in));
  int x = low.blob(0);
  if (flat) {
    x = low.reshape(x, Shape{in[0], in[1], 1, in[2]});
    w = {{1, w.kernel[0]}, {1, w.stride[0]}, {1, w.dilation[0]}, {0, w.pads[0], 0, w.pads[1]}};
  }
  const int blob = low.add(
      "conv2d", {x},
      {{"stride", w.stride}, {"padding", w.pads}, {"dilation", w.dilation}, {"groups", low.node().integer("group", 1)}},
      std::move(weights));
  const Shape out = low.shape_of(blob);
  return flat ? low.reshape(blob, Shape{out[0], out[1], out[3]}) : blob;
}

std::span<const OpEntry> conv_ops() { return conv_entries; }

}  // namespace softneuro::ort
