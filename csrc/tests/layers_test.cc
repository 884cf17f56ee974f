// Every routine that accepts one of a few layers of each type, at every level of this machine, against the layer's
// reference. The Python tests go much further; this one also runs where there is no Python, under an emulator for
// instance. Exit status 1 if any routine differs.
#include <cmath>
#include <cstdio>
#include <string>

#include "base/arena.h"
#include "base/error.h"
#include "layers/contract/naive.h"
#include "tests/expect.h"
#include "tests/layer_cases.h"

namespace softneuro {
namespace {

std::vector<float> values(int64_t count, int seed) {
  std::vector<float> list(static_cast<size_t>(count));
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = static_cast<float>((i + static_cast<size_t>(seed)) * 7919 % 1013) / 500 - 0.9f;
  }
  return list;
}

// Physical index of a row-major position.
int64_t place(const Shape& shape, const Layout& layout, int64_t position) {
  const int rank = shape.rank();
  if (layout.kind == Layout::Kind::nchw || rank < 2) return position;
  const int64_t inner = shape.product(2, rank), c = shape[1];
  if (layout.is_tiled()) {
    const TileGrid grid = tile_grid(shape[2], shape[3], layout.block);
    return position / inner * grid.h * grid.w * layout.block +
           grid.at(position % inner / shape[3], position % shape[3]);
  }
  const int64_t pixel = position % inner, channel = position / inner % c, n = position / (inner * c);
  if (layout.kind == Layout::Kind::nhwc) return (n * inner + pixel) * c + channel;
  const int64_t block = layout.block, blocks = (c + block - 1) / block;
  return ((n * blocks + channel / block) * inner + pixel) * block + channel % block;
}

struct Blob {
  AlignedBuffer memory;
  TensorView view;

  Blob(const Shape& shape, const Schema& schema)
      : memory(static_cast<size_t>(physical_elements(shape, schema.layout)) * sizeof(float)),
        view(dense_view(memory.data(), shape, schema)) {
    std::fill_n(memory.f32(), memory.size() / sizeof(float), 0.0f);
  }
  float& at(int64_t position) { return memory.f32()[place(view.shape, view.schema.layout, position)]; }
};

std::vector<float> run(const Problem& problem, const Routine& routine, const Tuning& tuning) {
  std::vector<Blob> blobs;
  std::vector<TensorView> in;
  for (size_t i = 0; i < problem.in.size(); ++i) {
    const Shape& shape = problem.in[i].shape;
    blobs.emplace_back(shape, routine.input_schema(problem, static_cast<int>(i)));
    const std::vector<float> from = values(shape.elements(), static_cast<int>(i));
    for (int64_t j = 0; j < shape.elements(); ++j) blobs.back().at(j) = from[static_cast<size_t>(j)];
    in.push_back(blobs.back().view);
  }
  Blob out(problem.out().shape, routine.info().out);
  const auto prepared = routine.prepare(problem, tuning, routine.packed(problem, tuning));
  const WorkspaceSize size = prepared->workspace();
  const AlignedBuffer workspace(size.bytes());
  prepared->run({in.data(), &out.view, {size, workspace.data()}, ParallelFor()});
  std::vector<float> result(static_cast<size_t>(problem.out().shape.elements()));
  for (size_t i = 0; i < result.size(); ++i) result[i] = out.at(static_cast<int64_t>(i));
  return result;
}

void check(const Case& item) {
  const Problem problem = problem_of(item);
  const auto naive = make_naive_routine(layer_def(item.layer.type));
  const std::vector<float> wanted = run(problem, *naive, {});
  for (const Routine* routine : accepting_routines(problem)) {
    if (!is_plain(*routine)) continue;
    if (routine->info().view) continue;
    for (const Tuning& tuning : routine->tunings(problem)) {
      const std::vector<float> got = run(problem, *routine, tuning);
      double difference = 0, norm = 1e-30;
      bool same_nans = true;
      for (size_t i = 0; i < wanted.size(); ++i) {
        if (std::isfinite(wanted[i])) {
          difference += (double{got[i]} - wanted[i]) * (double{got[i]} - wanted[i]);
          norm += double{wanted[i]} * wanted[i];
        } else {
          same_nans = same_nans && std::isnan(got[i]) == std::isnan(wanted[i]);
        }
      }
      const double error = std::sqrt(difference / norm);
      if (same_nans && error <= (routine->info().error == ErrorClass::exact ? 1e-5 : 1e-3)) continue;
      std::printf("%s: error %.3g\n", routine->descriptor(tuning).c_str(), error);
      ++test::failures();
    }
  }
}

Constant weight(const Shape& shape, int seed) { return constant_from(shape, values(shape.elements(), seed)); }

std::vector<Case> weighted_cases() {
  std::vector<Case> list;
  const auto add = [&](Layer made, const Shape& in, const Shape& kernel, int64_t biases) {
    made.set_weight("weight", weight(kernel, 3));
    made.set_weight("bias", weight({biases}, 5));
    list.push_back({made, {in}});
    made.post = {false, {ActivationKind::relu}};
    list.push_back({std::move(made), {in}});
  };
  const auto conv = [](int64_t stride, int64_t pad, int64_t dilation, int64_t groups) {
    return layer("conv2d", {{"stride", Axes{stride, stride}},
                            {"padding", Axes{pad, pad, pad, pad}},
                            {"dilation", Axes{dilation, dilation}},
                            {"groups", groups}});
  };
  add(conv(1, 1, 1, 1), {1, 32, 9, 11}, {32, 32, 3, 3}, 32);
  add(conv(2, 1, 1, 1), {2, 19, 9, 8}, {21, 19, 3, 3}, 21);
  add(conv(1, 1, 1, 1), {1, 19, 9, 21}, {3, 19, 3, 3}, 3);
  add(conv(1, 2, 2, 1), {1, 16, 9, 8}, {16, 16, 3, 3}, 16);
  add(conv(1, 0, 1, 1), {1, 48, 6, 7}, {80, 48, 1, 1}, 80);
  add(conv(2, 3, 1, 1), {1, 3, 21, 18}, {24, 3, 7, 7}, 24);
  add(conv(1, 1, 1, 32), {1, 32, 9, 11}, {32, 1, 3, 3}, 32);
  add(conv(2, 2, 1, 24), {1, 24, 12, 11}, {24, 1, 5, 5}, 24);
  add(conv(1, 1, 1, 2), {1, 32, 5, 6}, {32, 16, 3, 3}, 32);
  const Layer conv1d = layer("conv1d", {{"stride", Axes{1}}, {"padding", Axes{1, 1}}, {"dilation", Axes{1}}});
  add(conv1d, {2, 16, 21}, {17, 16, 3}, 17);
  const Layer transposed = layer("conv_transpose2d", {{"stride", Axes{2, 2}}, {"padding", Axes{1, 1}}});
  add(transposed, {1, 16, 5, 6}, {16, 9, 3, 3}, 9);
  add(layer("linear", {}), {5, 67}, {35, 67}, 35);
  add(layer("linear", {}), {1, 128}, {130, 128}, 130);
  list.push_back({layer("matmul", {}), {Shape{2, 9, 17}, Shape{2, 17, 21}}});
  for (const char* function : {"gelu", "tanh", "silu", "mish", "elu", "hardswish", "exp", "erf"}) {
    list.push_back({layer("activation", {{"function", function}}), {Shape{3, 19, 5}}});
  }
  list.push_back({layer("softmax", {{"axis", int64_t{1}}, {"log", int64_t{1}}}), {Shape{3, 19, 5}}});
  return list;
}

// A layer whose weights of [k][c](...) are zero but for the first `others`.
Case pruned(const char* type, const std::vector<std::pair<const char*, Shape>>& weights, const Shape& in,
            int64_t others) {
  Case item{layer(type, {}), {in}};
  for (const auto& [role, shape] : weights) {
    std::vector<float> values(static_cast<size_t>(shape.elements()), 0.0f);
    std::fill_n(values.begin(), others, 1.0f);
    item.layer.set_weight(role, constant_from(shape, std::move(values)));
  }
  return item;
}

// Who writes to a weight between its zeros being counted and its being packed gets an error.
void check_changed_weights(const char* type, const std::vector<std::pair<const char*, Shape>>& weights,
                           const Shape& in) {
  const Case before = pruned(type, weights, in, 40), after = pruned(type, weights, in, 2000);
  const Problem counted = problem_of(before), written = problem_of(after);
  int tried = 0;
  for (const Routine* routine : accepting_routines(counted)) {
    if (!routine->info().exploits_sparsity) continue;
    ++tried;
    for (const Tuning& tuning : routine->tunings(counted)) {
      Packed packed(routine->packing(counted, tuning));
      bool refused = false;
      try {
        routine->pack(written, tuning, packed);
      } catch (const Error&) {
        refused = true;
      }
      test::expect(refused, (routine->descriptor(tuning) + " packs what it has no room for").c_str());
    }
  }
  test::expect(tried > 0, "no sparse routine was tried");
}

}  // namespace
}  // namespace softneuro

SN_TEST(layers_test) {
  const softneuro::Shape filters{32, 32, 3, 3};
  softneuro::check_changed_weights("conv2d", {{"weight", filters}}, {1, 32, 9, 9});
  softneuro::check_changed_weights("conv2d_pair", {{"first_weight", filters}, {"second_weight", filters}},
                                   {1, 32, 9, 9});
  for (const int64_t rows : {1, 40}) softneuro::check_changed_weights("linear", {{"weight", {64, 96}}}, {rows, 96});
  std::vector<softneuro::Case> cases = softneuro::cases();
  for (softneuro::Case& item : softneuro::weighted_cases()) cases.push_back(std::move(item));
  for (const softneuro::Case& item : cases) {
    try {
      softneuro::check(item);
    } catch (const softneuro::Error& error) {
      std::printf("%s: %s\n", item.layer.type.c_str(), error.what());
      ++softneuro::test::failures();
    }
  }
}
