// conv2d_pair's routines against the reference, on blobs and scratch that end at pages that trap: random pairs, params
// and threads. Scratch holds NaN before, as nothing may be read there that was not written.
#include <array>
#include <optional>

#include "base/arena.h"
#include "layers/weights/sparse_lists.h"
#include "tests/check.h"
#include "tests/layer_cases.h"

namespace softneuro::test {
namespace {

struct Stage {
  int64_t kernel[2], stride[2], dilation[2], pad[4];
};
Stage random_stage() {
  Stage s{};
  for (int i = 0; i < 2; ++i) {
    s.kernel[i] = pick(0, 1) ? 3 : pick(1, 5);
    s.stride[i] = pick(0, 1) ? 1 : pick(1, 3);
    s.dilation[i] = pick(0, 2) ? 1 : pick(1, 3);
  }
  for (int64_t& pad : s.pad) pad = pick(0, 3);
  return s;
}
// The least input of the last outputs.
int64_t least(const Stage& s, int axis, int64_t outputs) {
  const int64_t extent = (outputs - 1) * s.stride[axis] + (s.kernel[axis] - 1) * s.dilation[axis] + 1;
  return std::max<int64_t>(1, extent - s.pad[axis] - s.pad[axis + 2]);
}

Constant weight(const Shape& shape, double zeros) {
  std::vector<float> values = random_data(static_cast<size_t>(shape.elements()));
  for (float& value : values) {
    if (pick(0, 99) < zeros * 100) value = 0;
  }
  return constant_from(shape, std::move(values));
}

Case random_case() {
  constexpr std::array<std::array<int64_t, 5>, 4> channels{
      {{3, 33, 24, 1, 1}, {4, 40, 36, 2, 4}, {36, 36, 35, 36, 1}, {5, 48, 48, 1, 48}}};
  const auto& [c, m, k, first_groups, second_groups] = channels[static_cast<size_t>(pick(0, 3))];
  const Stage first = random_stage(), second = random_stage();
  Case item{layer("conv2d_pair", {{"first_groups", first_groups}, {"second_groups", second_groups}}), {}};
  const auto set = [&](const std::string& role, const Stage& s) {
    item.layer.attrs.set(role + "_stride", Axes{s.stride[0], s.stride[1]});
    item.layer.attrs.set(role + "_dilation", Axes{s.dilation[0], s.dilation[1]});
    item.layer.attrs.set(role + "_padding", Axes(s.pad, s.pad + 4));
  };
  set("first", first);
  set("second", second);
  item.layer.attrs.set("first_function", std::string(pick(0, 1) ? "relu" : "silu"));
  item.layer.set_weight("first_weight", weight({m, c / first_groups, first.kernel[0], first.kernel[1]}, 0.8));
  item.layer.set_weight("second_weight", weight({k, m / second_groups, second.kernel[0], second.kernel[1]}, 0.8));
  if (pick(0, 1)) item.layer.set_weight("first_bias", weight({m}, 0));
  if (pick(0, 1)) item.layer.set_weight("second_bias", weight({k}, 0));
  item.layer.post.activation = random_activation();
  item.in.push_back({pick(1, 2), c, least(first, 0, least(second, 0, 1)) + pick(0, 20),
                     least(first, 1, least(second, 1, 1)) + pick(0, 40)});
  if (pick(0, 1)) {
    const Shape out = problem_of(item).out().shape;
    item.layer.post.residual = true;
    item.in.push_back(out);
  }
  return item;
}

// As they are offered, and any others.
Tuning random_tuning(const Routine& routine, const Problem& problem) {
  const auto offered = routine.tunings(problem);
  Tuning tuning = offered[static_cast<size_t>(pick(0, static_cast<int>(offered.size()) - 1))];
  if (pick(0, 1) == 0) return tuning;
  for (int& value : tuning) value = pick(1, pick(0, 1) ? 4 : 60);
  return tuning;
}

int check(const Case& item) {
  Problem problem = problem_of(item);
  problem.threads = pick(1, 4);
  std::vector<std::vector<float>> values;
  std::vector<std::vector<double>> doubles;
  std::vector<RefTensor> in;
  for (const Shape& shape : item.in) {
    values.push_back(random_data(static_cast<size_t>(shape.elements())));
    doubles.emplace_back(values.back().begin(), values.back().end());
    in.push_back({shape, doubles.back().data()});
  }
  std::vector<double> wanted(static_cast<size_t>(problem.out().shape.elements()));
  const RefTensor out{problem.out().shape, wanted.data()};
  run_reference(layer_def("conv2d_pair"), item.layer, in, {&out, 1});
  int count = 0;
  for (const Routine* routine : accepting_routines(problem)) {
    if (routine->info().fallback || routine->info().in != f32_nchw) continue;
    const Tuning tuning = random_tuning(*routine, problem);
    const auto prepared = routine->prepare(problem, tuning, routine->packed(problem, tuning));
    std::vector<std::unique_ptr<Guarded>> memory;
    std::vector<TensorView> views;
    for (size_t i = 0; i < values.size(); ++i) {
      memory.push_back(std::make_unique<Guarded>(values[i]));
      views.push_back(dense_view(memory.back()->data(), item.in[i], f32_nchw));
    }
    Guarded dst(wanted.size(), NAN);
    const TensorView view = dense_view(dst.data(), out.shape, f32_nchw);
    const WorkspaceSize size = prepared->workspace();
    Guarded scratch(round_to_line(size.bytes()) / sizeof(float), NAN);
    prepared->run({views.data(), &view, {size, scratch.data()}, own_pool(problem.threads)});
    double difference = 0, norm = 1e-2 * static_cast<double>(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double apart = dst.data()[i] - wanted[i];
      difference += apart * apart, norm += wanted[i] * wanted[i];
    }
    ++count;
    if (std::sqrt(difference / norm) < 1e-5) continue;
    if (++failures() > 20) continue;
    std::printf("%s: error %.3g; %s\n", routine->descriptor(tuning).c_str(), std::sqrt(difference / norm),
                ProblemClass(problem).str().c_str());
  }
  return count;
}

// Factors of a folded layer may be zero, or make NaN of zeros: lists have room for what there is, not for what the rows
// had.
void check_factors() {
  Case item{layer("conv2d_pair", {}), {{1, 8, 9, 9}}};
  const auto scaled = [](const Shape& shape) {
    std::vector<double> factors(static_cast<size_t>(shape[0]), 1.0);
    factors[1] = 0, factors[2] = INFINITY, factors[3] = NAN, factors[4] = NAN;
    return std::make_shared<const ConstantData>(weight(shape, 0.9), [factors] { return factors; });
  };
  item.layer.set_weight("first_weight", scaled({32, 8, 3, 3}));
  item.layer.set_weight("second_weight", scaled({24, 32, 3, 3}));
  const Problem problem = problem_of(item);
  for (const Routine* routine : accepting_routines(problem)) {
    if (routine->info().fallback) continue;
    const auto packed = routine->packed(problem, routine->tunings(problem).front());
    for (const char* name : {"first", "second"}) {
      const auto part = part_of(packed, name);
      const Packing::Section &values = *part->packing().find("values"), *starts = part->packing().find("starts");
      const int64_t last = starts != nullptr ? part->at<int32_t>("starts")[starts->count - 1]
                                             : part->at<int64_t>("begin")[part->packing().find("begin")->count - 1];
      expect(values.count == last, "as many values as are no zeros");
    }
  }
}

// What is stored past the caches is what is stored otherwise.
void check_stream(Isa isa) {
  const ConvSparseKernels& kernels = *conv_sparse_kernels(isa);
  const float values[] = {0.5F, -2, 3};
  const uint16_t codes[] = {0, 2, 1};
  const int32_t starts[] = {0, 1, 3}, channels[] = {1, 0}, offsets[] = {0, 1, 5};
  const SparseRows rows{values, codes, starts, channels, 2};
  constexpr int down = 5, across = 9;
  const int row = across * kernels.lanes;
  const auto src = random_data(static_cast<size_t>((down + 1) * row + 5));
  ConvSparseArgs args;
  args.weights = &rows, args.offsets = offsets, args.src = src.data(), args.src_row = row;
  args.dst_row = row, args.dst_channel = down * row, args.rows = down, args.vectors = across, args.last = kernels.lanes;
  args.activation.kind = ActivationKind::relu;
  AlignedBuffer plain(static_cast<size_t>(2 * down * row) * sizeof(float)), streamed(plain.size());
  args.dst = plain.f32();
  kernels.run(args);
  args.dst = streamed.f32(), args.stream = true;
  kernels.run(args);
  const size_t bytes = static_cast<size_t>(2 * down * row) * sizeof(float);
  expect(std::memcmp(plain.data(), streamed.data(), bytes) == 0, "the same bits past the caches");
}

// They are those that are written once, whole vectors at a time, and are large.
void check_who_streams() {
  constexpr int64_t large = int64_t{1} << 40;
  const Activation relu{ActivationKind::relu}, silu{ActivationKind::silu};
  expect(stores_past_caches(true, 1, relu, large), "large outputs go past the caches");
  expect(!stores_past_caches(false, 1, relu, large), "rows are not aligned");
  expect(!stores_past_caches(true, 2, relu, large), "sums of chunks come back");
  expect(!stores_past_caches(true, 1, silu, large), "an activation reads again");
  expect(!stores_past_caches(true, 1, relu, l2_bytes()), "small ones stay");
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv2d_pair_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  int count = 0;
  for (int i = 0; i < 150; ++i) count += check(random_case());
  check_factors();
  check_who_streams();
  for (const Isa isa : available_isas()) check_stream(isa);
  expect(count > 200, "routines accept most pairs");
}
