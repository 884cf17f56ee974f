// Routines of the element-wise, reducing, normalizing, moving and pooling layers on blobs with gaps between images
// (slices of concatenations) and in place: bit for bit what they give on dense ones. Exit status 1 if any differs.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "layers/registry.h"

namespace softneuro {
namespace {

int failures = 0;

// A blob with `gap` elements after each image; gaps are NaN and must stay.
class Blob {
 public:
  Blob(const Shape& shape, const Schema& schema, int64_t gap) : view_(dense_view(nullptr, shape, schema)) {
    view_.batch_stride = view_.image_elements() + gap;
    memory_.assign(static_cast<size_t>(images() * view_.batch_stride), std::nanf(""));
    view_.data = memory_.data();
  }

  int64_t images() const { return view_.shape.rank() == 0 ? 1 : view_.shape[0]; }
  const TensorView& view() const { return view_; }

  // The same values whatever the gap; padding lanes zero.
  void fill() {
    const int64_t size = view_.image_elements(), block = view_.schema.layout.block;
    for (int64_t n = 0; n < images(); ++n) {
      for (int64_t i = 0; i < size; ++i) {
        const int64_t pixels = view_.shape.product(2, view_.shape.rank());
        const bool padding = block > 1 && i / (pixels * block) * block + i % block >= view_.shape[1];
        at(n)[i] = padding ? 0 : static_cast<float>((n * size + i) * 7919 % 1013) / 500 - 0.9f;
      }
    }
  }
  bool gaps_untouched() const {
    for (int64_t n = 0; n < images(); ++n) {
      for (int64_t i = view_.image_elements(); i < view_.batch_stride; ++i) {
        if (!std::isnan(at(n)[i])) return false;
      }
    }
    return true;
  }
  bool same(const Blob& other) const {
    for (int64_t n = 0; n < images(); ++n) {
      if (std::memcmp(at(n), other.at(n), static_cast<size_t>(view_.image_elements()) * sizeof(float)) != 0)
        return false;
    }
    return true;
  }

 private:
  float* at(int64_t image) const { return view_.f32() + image * view_.batch_stride; }

  TensorView view_;
  std::vector<float> memory_;
};

struct Case {
  Layer layer;
  std::vector<Shape> in;
};

std::vector<Blob> blobs(const Problem& problem, const Routine& routine, int64_t gap) {
  std::vector<Blob> list;
  for (size_t i = 0; i < problem.in.size(); ++i) {
    list.emplace_back(problem.in[i].shape, routine.input_schema(problem, static_cast<int>(i)), gap);
    list.back().fill();
  }
  return list;
}

void check(const Case& item) {
  Problem problem{&item.layer, {}, {}, 1};
  for (const Shape& shape : item.in) problem.in.push_back({shape, DType::float32});
  const auto main = std::span<const TensorDesc>(problem.in).first(item.in.size() - item.layer.post.residual);
  problem.out = layer_def(item.layer.type).infer(item.layer, main);
  for (const Routine* routine : accepting_routines(problem)) {
    // Such a view needs a dense input: see Routine::view_offset.
    if (routine->info().view && problem.in[0].shape[0] != problem.out.shape[0]) continue;
    const Tuning tuning = routine->tunings(problem).front();
    const auto prepared = routine->prepare(problem, tuning, routine->pack(problem, tuning));
    const AlignedBuffer workspace(prepared->workspace());
    const auto run = [&](const std::vector<Blob>& in, const TensorView& out) {
      std::vector<TensorView> views;
      for (const Blob& blob : in) views.push_back(blob.view());
      prepared->run({views.data(), out, static_cast<std::byte*>(workspace.data()), ParallelFor()});
    };
    const auto expect = [&](bool right, const char* what) {
      if (!right) std::printf("%s: %s\n", routine->descriptor(tuning).c_str(), what), ++failures;
    };

    const Schema& schema = routine->info().out;
    const std::vector<Blob> dense = blobs(problem, *routine, 0), gapped = blobs(problem, *routine, 48);
    Blob wanted(problem.out.shape, schema, 0), with_gaps(problem.out.shape, schema, 80);
    run(dense, wanted.view());
    run(gapped, with_gaps.view());
    expect(with_gaps.same(wanted), "differs where images have gaps between them");
    expect(with_gaps.gaps_untouched(), "writes between images");

    const int place = routine->info().inplace_input;
    if (place < 0 || problem.in[static_cast<size_t>(place)].shape != problem.out.shape) continue;
    const std::vector<Blob> overwritten = blobs(problem, *routine, 16);
    run(overwritten, overwritten[static_cast<size_t>(place)].view());
    expect(overwritten[static_cast<size_t>(place)].same(wanted), "differs in place");
  }
}

Layer layer(const char* type, std::initializer_list<std::pair<const char*, AttrValue>> attrs) {
  Layer made;
  made.type = type;
  for (const auto& [name, value] : attrs) made.attrs.set(name, value);
  return made;
}

Constant ramp(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.3f + 0.01f * static_cast<float>(i);
  return constant_from(shape, std::move(values));
}

using Axes = std::vector<int64_t>;

void add_moving_cases(std::vector<Case>& list) {
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

std::vector<Case> cases() {
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
  }
  for (const Shape& other : {Shape{3, 19, 1, 1}, Shape{1, 19, 1, 1}, Shape{5, 7}, Shape{19, 1, 7}, Shape{3, 1, 5, 1}}) {
    list.push_back({layer("binary", {{"function", "sub"}}), {image, other}});
    list.push_back({layer("binary", {{"function", "sub"}}), {other, image}});
  }
  for (const Axes& axes : {Axes{2, 3}, Axes{0, 2}, Axes{1, 3}, Axes{0, 1, 2, 3}}) {
    list.push_back({layer("reduce", {{"function", "sum"}, {"axes", axes}}), {image}});
    list.push_back({layer("reduce", {{"function", "mean"}, {"axes", axes}, {"keepdim", int64_t{1}}}), {image}});
  }
  add_moving_cases(list);
  return list;
}

// Inputs that their producers have written where the concatenation wants them stay, the others come beside them.
void check_concat_in_place() {
  const Layer concat = layer("concat", {{"axis", int64_t{1}}});
  const Shape part{2, 16, 3, 5}, whole{2, 32, 3, 5};
  const Problem problem{&concat, {{part, DType::float32}, {part, DType::float32}}, {whole, DType::float32}, 1};
  for (const Routine* routine : accepting_routines(problem)) {
    const Schema& schema = routine->info().out;
    if (schema.layout == Layout::nhwc()) continue;
    const auto prepared = routine->prepare(problem, {}, nullptr);
    Blob first(part, schema, 0), second(part, schema, 0), wanted(whole, schema, 0), out(whole, schema, 0);
    first.fill();
    second.fill();
    const TensorView apart[] = {first.view(), second.view()};
    prepared->run({apart, wanted.view(), nullptr, ParallelFor()});
    TensorView place = second.view();
    place.data = out.view().f32() + place.image_elements();
    place.batch_stride = out.view().batch_stride;
    for (int64_t n = 0; n < 2; ++n) {
      std::memcpy(place.f32() + n * place.batch_stride, second.view().f32() + n * place.image_elements(),
                  static_cast<size_t>(place.image_elements()) * sizeof(float));
    }
    const TensorView in_place[] = {first.view(), place};
    prepared->run({in_place, out.view(), nullptr, ParallelFor()});
    if (!out.same(wanted)) std::printf("%s: differs in place\n", routine->descriptor().c_str()), ++failures;
  }
}

}  // namespace
}  // namespace softneuro

int main() {
  for (const softneuro::Case& item : softneuro::cases()) {
    try {
      softneuro::check(item);
    } catch (const softneuro::Error& error) {
      std::printf("%s: %s\n", item.layer.type.c_str(), error.what());
      ++softneuro::failures;
    }
  }
  softneuro::check_concat_in_place();
  std::printf(softneuro::failures == 0 ? "ok\n" : "%d failures\n", softneuro::failures);
  return softneuro::failures == 0 ? 0 : 1;
}
