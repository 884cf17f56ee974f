// Layers of every kind that needs no host to state: what the tests of routines in C++ go through.
#pragma once

#include <vector>

#include "layers/contract/registry.h"

namespace softneuro {

struct Case {
  Layer layer;
  std::vector<Shape> in;  // a residual last
};

// Other types and views with strides of their own are the Python tests'.
inline bool is_plain(const Routine& routine) {
  const RoutineInfo& info = routine.info();
  return info.in.dtype == DType::float32 && info.out.dtype == DType::float32 && !info.out.layout.strided;
}

inline Problem problem_of(const Case& item) {
  Problem problem{&item.layer, {}, {}, 1};
  for (const Shape& shape : item.in) problem.in.push_back({shape});
  const auto main = std::span<const TensorDesc>(problem.in).first(item.in.size() - item.layer.post.residual);
  problem.outs = infer_outputs(layer_def(item.layer.type), item.layer, main);
  return problem;
}

inline Layer layer(const char* type, std::initializer_list<std::pair<const char*, AttrValue>> attrs) {
  Layer made;
  made.type = type;
  for (const auto& [name, value] : attrs) made.attrs.set(name, value);
  return made;
}

// The same with zeros for nine in ten.
inline Constant sparse_ramp(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i * 7919 % 97 % 10 == 0 ? 0.3f + 0.01f * static_cast<float>(i % 100) : 0.0f;
  }
  return constant_from(shape, std::move(values));
}
inline Constant ramp(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.3f + 0.01f * static_cast<float>(i);
  return constant_from(shape, std::move(values));
}

using Axes = std::vector<int64_t>;

inline void add_moving_cases(std::vector<Case>& list) {
  const Shape image{3, 19, 5, 7}, blocks{2, 32, 6, 4}, table{5, 23};
  for (const Shape& shape : {image, blocks, table, Shape{3, 16, 1, 1}}) {
    list.push_back({layer("adapt", {}), {shape}});
    list.push_back({layer("identity", {}), {shape}});
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      const int64_t size = shape[static_cast<int>(axis)];
      list.push_back({layer("concat", {{"axis", axis}}), {shape, shape, shape}});
      list.push_back({layer("slice", {{"axis", axis}, {"start", int64_t{0}}, {"end", size}}), {shape}});
      list.push_back({layer("slice", {{"axis", axis}, {"start", size / 2}, {"end", size}}), {shape}});
      list.push_back(
          {layer("slice", {{"axis", axis}, {"start", size / 3}, {"end", size}, {"step", int64_t{2}}}), {shape}});
    }
  }
  list.push_back({layer("reshape", {{"shape", Axes{3, 19, 35}}}), {image}});
  list.push_back({layer("reshape", {{"shape", Axes{3, 16}}}), {Shape{3, 16, 1, 1}}});
  for (const Axes& perm : {Axes{0, 2, 3, 1}, Axes{0, 3, 1, 2}, Axes{1, 0, 2, 3}, Axes{3, 2, 1, 0}, Axes{0, 1, 3, 2}}) {
    list.push_back({layer("transpose", {{"perm", perm}}), {image}});
  }
  list.push_back({layer("transpose", {{"perm", Axes{1, 0}}}), {table}});
  list.push_back({layer("transpose", {{"perm", Axes{1, 0}}}), {Shape{5, 1}}});
  for (const char* mode : {"constant", "reflect", "replicate"}) {
    list.push_back({layer("pad", {{"mode", mode}, {"pads", Axes{0, 0, 1, 2, 0, 0, 0, 3}}}), {image}});
    list.push_back({layer("pad", {{"mode", mode}, {"pads", Axes{1, 2, 0, 0, 2, 1, 0, 0}}}), {image}});
  }
  list.push_back({layer("pad", {{"mode", "constant"}, {"pads", Axes{2, -1}}, {"value", 1.5}}), {Shape{7}}});
  for (const char* function : {"max", "avg"}) {
    for (const Shape& shape : {image, blocks}) {
      list.push_back(
          {layer(
               "pool2d",
               {{"function", function}, {"kernel", Axes{3, 3}}, {"stride", Axes{2, 2}}, {"padding", Axes{1, 1, 1, 1}}}),
           {shape}});
      list.push_back({layer("adaptive_pool2d", {{"function", function}, {"output_size", Axes{1, 1}}}), {shape}});
    }
  }
  for (const char* mode : {"nearest", "bilinear"}) {
    list.push_back({layer("upsample", {{"mode", mode}, {"output_size", Axes{9, 14}}}), {image}});
  }
  list.push_back({layer("pixel_shuffle", {{"factor", int64_t{2}}}), {Shape{3, 20, 5, 7}}});
  Layer constant = layer("constant", {});
  constant.set_weight("value", ramp(image));
  list.push_back({constant, {}});
}

inline std::vector<Case> cases() {
  const Shape image{3, 19, 5, 7}, table{5, 23};
  std::vector<Case> list;
  for (const Shape& shape : {image, table}) {
    for (const char* function : {"relu", "sigmoid"}) {
      list.push_back({layer("activation", {{"function", function}}), {shape}});
    }
    for (const char* function : {"sub", "div", "pow"}) {
      list.push_back({layer("binary", {{"function", function}}), {shape, shape}});
      list.push_back({layer("binary", {{"function", function}, {"scalar", 2.5}}), {shape}});
    }
    Layer scaled = layer("scale_shift", {});
    scaled.set_weight("scale", ramp({shape[1]}));
    scaled.set_weight("shift", ramp({shape[1]}));
    list.push_back({scaled, {shape}});
    scaled.post = {true, {ActivationKind::gelu}};
    list.push_back({scaled, {shape, shape}});
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      list.push_back({layer("softmax", {{"axis", axis}}), {shape}});
      list.push_back({layer("reduce", {{"function", "mean"}, {"axes", Axes{axis}}}), {shape}});
      list.push_back({layer("reduce", {{"function", "amax"}, {"axes", Axes{axis}}, {"keepdim", int64_t{1}}}), {shape}});
    }
    list.push_back({layer("layer_norm", {{"axes", int64_t{1}}, {"eps", 1e-5}}), {shape}});
    list.push_back({layer("group_norm", {{"groups", int64_t{1}}, {"eps", 1e-5}}), {shape}});
    list.push_back({layer("rms_norm", {{"axes", int64_t{1}}, {"eps", 1e-5}}), {shape}});
  }
  for (const Shape& other : {Shape{3, 19, 1, 1}, Shape{1, 19, 1, 1}, Shape{5, 7}, Shape{19, 1, 7}, Shape{3, 1, 5, 1}}) {
    list.push_back({layer("binary", {{"function", "sub"}}), {image, other}});
    list.push_back({layer("binary", {{"function", "sub"}}), {other, image}});
  }
  for (const bool residual : {false, true}) {
    Layer gated = layer("squeeze_excite", {{"squeeze_function", "relu"}, {"excite_function", "sigmoid"}});
    gated.set_weight("squeeze_weight", ramp({7, 19, 1, 1}));
    gated.set_weight("excite_weight", ramp({19, 7, 1, 1}));
    gated.set_weight("excite_bias", ramp({19}));
    gated.post = {residual, {ActivationKind::gelu}};
    list.push_back({gated, residual ? std::vector<Shape>{image, image} : std::vector<Shape>{image}});
  }
  for (const Axes& axes : {Axes{2, 3}, Axes{0, 2}, Axes{1, 3}, Axes{0, 1, 2, 3}}) {
    list.push_back({layer("reduce", {{"function", "sum"}, {"axes", axes}}), {image}});
    list.push_back({layer("reduce", {{"function", "mean"}, {"axes", axes}, {"keepdim", int64_t{1}}}), {image}});
  }
  for (const int64_t stride : {1, 2}) {
    Layer sparse = layer("conv2d", {{"stride", Axes{stride, stride}}, {"padding", Axes{1, 1, 1, 1}}});
    sparse.set_weight("weight", sparse_ramp({24, 19, 3, 3}));
    list.push_back({sparse, {Shape{3, 19, 15, 21}}});
  }
  add_moving_cases(list);
  return list;
}

}  // namespace softneuro
