#include "providers/ort/lower/custom_layers.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "net/layer_call.h"
#include "providers/ort/lower/lowering.h"

namespace softneuro::ort {
namespace {

std::vector<int64_t> list_of(const NodeAttributes& attributes, const char* name, size_t count, int64_t fallback,
                             int64_t least) {
  auto values = attributes.integers(name).value_or(std::vector<int64_t>(count, fallback));
  if (values.size() != count) {
    throw Error(std::string(name) + " has " + std::to_string(values.size()) + " values, not " + std::to_string(count));
  }
  for (const int64_t value : values) {
    if (value < least) throw Error(std::string(name) + " must be " + std::to_string(least) + " or more");
  }
  return values;
}

int64_t groups_of(const NodeAttributes& attributes) {
  const int64_t groups = attributes.integer("group").value_or(1);
  if (groups < 1) throw Error("group must be 1 or more");
  return groups;
}

void set_activation(Layer& layer, const NodeAttributes& attributes) {
  const std::string name = attributes.text("activation").value_or("");
  if (name.empty()) return;
  if (name == "clamp" || name == "leaky_relu" || name == "elu") {
    throw Error("activation '" + name + "' has parameters, which the op does not take");
  }
  layer.post.activation.kind = parse_activation(name);
}

void expect_scale(const std::string& name, float scale) {
  if (std::isfinite(scale) && scale > 0) return;
  throw Error(name + " is " + exact_number(static_cast<double>(scale)), {}, "scales are positive and finite");
}

// Reads the grid of unsigned bytes from attributes whose names begin like that.
std::shared_ptr<const Quantization> grid_of(const NodeAttributes& attributes, const std::string& prefix) {
  const std::string scale_name = prefix + "scale", zero_name = prefix + "zero_point";
  const auto scale = attributes.real(scale_name.c_str());
  if (!scale) throw Error("it has no attribute " + scale_name, {}, "give the scale of its bytes");
  expect_scale(scale_name, *scale);
  const int64_t zero = attributes.integer(zero_name.c_str()).value_or(0);
  if (zero < 0 || zero > 255) {
    throw Error(zero_name + " is " + std::to_string(zero), {}, "zero points of bytes are from 0 to 255");
  }
  return std::make_shared<const Quantization>(Quantization{{*scale}, {static_cast<int32_t>(zero)}});
}

void set_weights(Layer& layer, std::span<const HostTensor> constants) {
  layer.set_weight("weight", constant_of(constants[0]));
  if (constants.size() > 1) layer.set_weight("bias", constant_of(constants[1]));
}

// Completes a layer from weight, scales and perhaps a bias.
CustomLayer quantized_layer(Layer layer, const NodeAttributes& attributes, std::span<const HostTensor> constants) {
  const HostTensor& weight = constants[0];
  Quantization q;
  q.scales = constants[1].reals();
  const size_t count = q.scales.size();
  if (weight.dims.empty()) throw Error("w is a scalar");
  if (count != 1 && static_cast<int64_t>(count) != weight.dims[0]) {
    throw Error("w_scale has " + std::to_string(count) + " values", {},
                "give one, or one for each of " + std::to_string(weight.dims[0]) + " outputs");
  }
  for (size_t i = 0; i < count; ++i) expect_scale("w_scale[" + std::to_string(i) + "]", q.scales[i]);
  q.axis = count == 1 ? -1 : 0;
  q.least = -128, q.most = 127;
  q.zero_points.assign(count, 0);
  const TensorDesc desc{.shape = Shape(weight.dims), .quantization = std::make_shared<const Quantization>(q)};
  layer.set_weight("weight", std::make_shared<const ConstantData>(desc, DType::qint8, weight.data));
  if (constants.size() > 2) layer.set_weight("bias", constant_of(constants[2]));
  layer.post.quantize = grid_of(attributes, "y_");
  return {std::move(layer), grid_of(attributes, "x_")};
}

std::vector<int64_t> infer_conv(const NodeAttributes& attributes, std::span<const std::vector<int64_t>> shapes) {
  const auto &x = shapes[0], &w = shapes[1];
  if (x.empty() || w.empty()) return {};
  if (x.size() != w.size() || x.size() < 3 || x.size() > 4) {
    throw Error("it takes x[N,C,L] with w[K,C/group,l], or x[N,C,H,W] with w[K,C/group,h,w]");
  }
  const size_t axes = x.size() - 2;
  const auto strides = list_of(attributes, "strides", axes, 1, 1), pads = list_of(attributes, "pads", 2 * axes, 0, 0),
             dilations = list_of(attributes, "dilations", axes, 1, 1);
  const int64_t groups = groups_of(attributes);
  if (x[1] >= 0 && w[1] >= 0 && x[1] != w[1] * groups) {
    throw Error("x has " + std::to_string(x[1]) + " channels, w is for " + std::to_string(w[1] * groups));
  }
  std::vector<int64_t> out{x[0], w[0]};
  for (size_t i = 0; i < axes; ++i) {
    const int64_t size = x[i + 2], kernel = w[i + 2];
    const int64_t last = size + pads[i] + pads[axes + i] - dilations[i] * (kernel - 1) - 1;
    if (size >= 0 && kernel >= 0 && last < 0) throw Error("the kernel is larger than the padded input");
    out.push_back(size < 0 || kernel < 0 ? -1 : last / strides[i] + 1);
  }
  return out;
}

Layer plain_conv(const NodeAttributes& attributes, int rank) {
  const auto axes = static_cast<size_t>(std::max(rank - 2, 0));
  Layer layer;
  layer.type = rank == 3 ? "conv1d" : "conv2d";
  layer.attrs.set("stride", list_of(attributes, "strides", axes, 1, 1));
  layer.attrs.set("padding", list_of(attributes, "pads", 2 * axes, 0, 0));
  layer.attrs.set("dilation", list_of(attributes, "dilations", axes, 1, 1));
  layer.attrs.set("groups", groups_of(attributes));
  set_activation(layer, attributes);
  return layer;
}

CustomLayer conv_layer(const NodeAttributes& attributes, std::span<const HostTensor> constants, int rank) {
  Layer layer = plain_conv(attributes, rank);
  set_weights(layer, constants);
  return {std::move(layer)};
}

// A stage's attributes, whose names have a prefix.
NodeAttributes stage_of(const NodeAttributes& attributes, const std::string& prefix) {
  NodeAttributes stage;
  stage.integers = [&attributes, prefix](const char* name) { return attributes.integers((prefix + name).c_str()); };
  stage.integer = [&attributes, prefix](const char* name) { return attributes.integer((prefix + name).c_str()); };
  stage.text = [&attributes, prefix](const char* name) { return attributes.text((prefix + name).c_str()); };
  return stage;
}

// Infers shapes from those of x, the first weight and bias, and the second ones.
std::vector<int64_t> infer_pair(const NodeAttributes& attributes, std::span<const std::vector<int64_t>> shapes) {
  const std::array<std::vector<int64_t>, 2> first{shapes[0], shapes[1]};
  const std::array<std::vector<int64_t>, 2> second{infer_conv(stage_of(attributes, "first_"), first), shapes[3]};
  if (second[0].size() == 3) throw Error("it takes x[N,C,H,W]");
  return infer_conv(stage_of(attributes, "second_"), second);
}

CustomLayer pair_layer(const NodeAttributes& attributes, std::span<const HostTensor> constants, int rank) {
  if (rank != 4) throw Error("it takes weights of rank 4");
  Layer pair = conv2d_pair_of(plain_conv(stage_of(attributes, "first_"), rank),
                              plain_conv(stage_of(attributes, "second_"), rank));
  pair.set_weight("first_weight", constant_of(constants[0]));
  pair.set_weight("first_bias", constant_of(constants[1]));
  pair.set_weight("second_weight", constant_of(constants[2]));
  if (constants.size() > 3) pair.set_weight("second_bias", constant_of(constants[3]));
  return {std::move(pair)};
}

CustomLayer quantized_conv(const NodeAttributes& attributes, std::span<const HostTensor> constants, int rank) {
  return quantized_layer(plain_conv(attributes, rank), attributes, constants);
}

std::vector<int64_t> infer_linear(const NodeAttributes&, std::span<const std::vector<int64_t>> shapes) {
  if (shapes[0].empty() || shapes[1].empty()) return {};
  std::vector<int64_t> out = shapes[0];
  if (shapes[1].size() != 2) throw Error("it takes w[K,C]");
  if (out.back() >= 0 && shapes[1][1] >= 0 && out.back() != shapes[1][1]) {
    throw Error("x ends in " + std::to_string(out.back()) + ", w is for " + std::to_string(shapes[1][1]));
  }
  out.back() = shapes[1][0];
  return out;
}

Layer plain_linear(const NodeAttributes& attributes) {
  Layer layer;
  layer.type = "linear";
  set_activation(layer, attributes);
  return layer;
}

CustomLayer linear_layer(const NodeAttributes& attributes, std::span<const HostTensor> constants, int) {
  Layer layer = plain_linear(attributes);
  set_weights(layer, constants);
  return {std::move(layer)};
}

CustomLayer quantized_linear(const NodeAttributes& attributes, std::span<const HostTensor> constants, int) {
  return quantized_layer(plain_linear(attributes), attributes, constants);
}

CustomAdapt layout_adapt(const NodeAttributes& attributes) {
  CustomAdapt adapt;
  adapt.from.layout = parse_layout(attributes.text("from").value_or("nchw"));
  adapt.to.layout = parse_layout(attributes.text("to").value_or("nchw"));
  adapt.channels = attributes.integer("channels").value_or(0);
  if (adapt.channels < 0) throw Error("channels must be 0 or more");
  return adapt;
}

std::vector<int64_t> infer_adapt(const NodeAttributes& attributes, std::span<const std::vector<int64_t>> shapes) {
  const CustomAdapt adapt = layout_adapt(attributes);
  if (shapes[0].empty()) return {};
  return memory_dims(logical_dims(shapes[0], adapt.from.layout, adapt.channels), adapt.to.layout);
}

template <bool to_bytes>
CustomAdapt byte_adapt(const NodeAttributes& attributes) {
  CustomAdapt adapt;
  (to_bytes ? adapt.to : adapt.from).dtype = DType::qint8;
  adapt.quantization = grid_of(attributes, "");
  return adapt;
}

std::vector<int64_t> infer_same(const NodeAttributes&, std::span<const std::vector<int64_t>> shapes) {
  return shapes[0];
}

constexpr DType f32 = DType::float32, u8 = DType::uint8, s8 = DType::int8;
constexpr CustomOpKind kinds[] = {
    {"Conv", 3, {f32, f32, f32}, f32, infer_conv, conv_layer, nullptr},
    {"SparseConv2d", 3, {f32, f32, f32}, f32, infer_conv, conv_layer, nullptr, true},
    {"FusedSparseConv2d", 5, {f32, f32, f32, f32, f32}, f32, infer_pair, pair_layer, nullptr, true},
    {"Linear", 3, {f32, f32, f32}, f32, infer_linear, linear_layer, nullptr},
    {"Adapt", 1, {f32}, f32, infer_adapt, nullptr, layout_adapt},
    {"QConv", 4, {u8, s8, f32, f32}, u8, infer_conv, quantized_conv, nullptr},
    {"QLinear", 4, {u8, s8, f32, f32}, u8, infer_linear, quantized_linear, nullptr},
    {"Quantize", 1, {f32}, u8, infer_same, nullptr, byte_adapt<true>},
    {"Dequantize", 1, {u8}, f32, infer_same, nullptr, byte_adapt<false>},
};

}  // namespace

std::span<const CustomOpKind> custom_op_kinds() { return kinds; }

std::vector<int64_t> logical_dims(std::vector<int64_t> given, const Layout& layout, int64_t channels) {
  if (layout.is_tiled()) throw Error("no tensor comes in " + layout.str(), {}, "give nchw, nhwc or nchw{c}c");
  if (layout.is_blocked()) {
    if (given.size() < 3 || (given.back() >= 0 && given.back() != layout.block)) {
      throw Error("a tensor in " + layout.str() + " is [N,C/" + std::to_string(layout.block) + ",...," +
                  std::to_string(layout.block) + "]");
    }
    given.pop_back();
    const int64_t lanes = given[1] < 0 ? -1 : given[1] * layout.block;
    if (channels > 0 && lanes >= 0 && (channels > lanes || channels <= lanes - layout.block)) {
      throw Error("channels=" + std::to_string(channels) + " do not take " + std::to_string(lanes) + " lanes");
    }
    given[1] = channels > 0 ? channels : lanes;
  } else if (layout.kind == Layout::Kind::nhwc) {
    if (given.size() < 3) throw Error("a tensor in nhwc is [N,...,C], of rank 3 or more");
    std::rotate(given.begin() + 1, given.end() - 1, given.end());
  }
  return given;
}

std::vector<int64_t> memory_dims(std::vector<int64_t> logical, const Layout& layout) {
  if (layout.is_tiled()) throw Error("no tensor comes in " + layout.str(), {}, "give nchw, nhwc or nchw{c}c");
  if (layout.is_blocked()) {
    if (logical.size() < 2) throw Error(layout.str() + " needs a tensor of rank 2 or more");
    if (logical[1] >= 0) logical[1] = (logical[1] + layout.block - 1) / layout.block;
    logical.push_back(layout.block);
  } else if (layout.kind == Layout::Kind::nhwc) {
    if (logical.size() < 3) throw Error("nhwc needs a tensor of rank 3 or more");
    std::rotate(logical.begin() + 1, logical.begin() + 2, logical.end());
  }
  return logical;
}

}  // namespace softneuro::ort
