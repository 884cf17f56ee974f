// How tuning saves time: its clock, what it forecasts, on what it times routines, and on which part of a layer.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "layers/contract/registry.h"
#include "tests/expect.h"
#include "tests/layer_cases.h"
#include "tune/measure/excerpt.h"
#include "tune/measure/forecast.h"
#include "tune/measure/probes.h"
#include "tune/measure/stand_ins.h"
#include "tune/measure/timekeeper.h"

namespace softneuro {
namespace {

using test::expect;

void check_timekeeper() {
  double time = 100;
  Timekeeper keeper(10, [&] { return time; });
  time += 1;
  {
    const auto outer = keeper.in("outer");
    time += 2;
    for (int i = 0; i < 2; ++i) {
      const auto inner = keeper.in("inner");
      time += 3;
    }
    time += 0.5;
  }
  time += 0.25;
  const auto stages = keeper.stages();
  expect(stages.size() == 3 && stages[1].name == "outer" && stages[2].name == "inner", "stages in order of entry");
  expect(stages[0].seconds == 1.25, "what is in no stage");
  expect(stages[1].seconds == 2.5 && stages[1].times == 1, "a stage without what is inside it");
  expect(stages[2].seconds == 6 && stages[2].times == 2, "a stage entered twice");
  expect(keeper.spent() == 9.75 && keeper.left() == 0.25, "the budget");
  double sum = 0;
  for (const StageTime& stage : stages) sum += stage.seconds;
  expect(sum == keeper.spent(), "stages add up to all of the time");
}

Case convolution(int64_t batch, int64_t channels, int64_t size, int64_t kernel = 3) {
  Layer made = layer("conv2d", {{"padding", Axes{1, 1, 1, 1}}});
  made.weights.emplace_back("weight", ramp({channels, channels, kernel, kernel}));
  return {made, {Shape{batch, channels, size, size}}};
}

std::vector<Candidate> timed(double fast, double slow) {
  std::vector<Candidate> candidates(2);
  candidates[0].descriptor = "fast", candidates[1].descriptor = "slow";
  candidates[0].seconds = fast, candidates[1].seconds = slow;
  candidates[0].measured = candidates[1].measured = true;
  for (Candidate& candidate : candidates) candidate.choice.routine = routines("conv2d").front().get();
  return candidates;
}

ProblemClass class_of(const Case& item) { return ProblemClass(problem_of(item)); }

void check_forecast() {
  const Case a = convolution(1, 32, 16), b = convolution(1, 64, 16), near = convolution(1, 64, 12),
             far = convolution(1, 256, 64), other = convolution(1, 64, 16, 1);
  Forecast forecast;
  const std::vector<Candidate> asked = timed(1, 1);
  expect(!forecast.ratio(class_of(near), asked[1]), "nothing is known at first");
  expect(forecast.seconds(class_of(near), asked[1]) == 1, "the guess stands at first");
  forecast.learn(class_of(a), timed(1e-3, 6e-3));
  const auto one = forecast.ratio(class_of(near), asked[1]);
  expect(one && std::abs(one->likely - 6) < 1e-6 && one->least == 0, "one layer leaves nothing out");
  forecast.learn(class_of(b), timed(2e-3, 8e-3));
  std::vector<Candidate> unmeasured = timed(1, 1);
  for (Candidate& candidate : unmeasured) candidate.measured = false;
  forecast.learn(class_of(b), unmeasured);
  const auto slow = forecast.ratio(class_of(near), asked[1]), fast = forecast.ratio(class_of(near), asked[0]);
  expect(slow && std::abs(slow->likely - std::sqrt(24)) < 1e-6, "ratios meet in the middle");
  expect(slow && slow->least > 1 && slow->least < 4, "no less than likely by far");
  expect(fast && fast->least < 1, "the fastest may win");
  const auto away = forecast.ratio(class_of(far), asked[1]);
  expect(away && slow && away->least < slow->least && away->likely == slow->likely, "the further the less sure");
  expect(!forecast.ratio(class_of(other), asked[1]), "another kernel is another kind");
  const double scale = estimate_seconds(problem_of(near), 0) / estimate_seconds(problem_of(b), 0);
  expect(std::abs(forecast.seconds(class_of(near), asked[1]) / (8e-3 * scale) - 1) < 1e-6, "seconds by the nearest");
  expect(forecast.seconds(class_of(other), asked[1]) != 1, "seconds at the pace of other kinds");

  expect(forecast.least_fusion_ratio(class_of(near)) == 0, "nothing is known of fusions");
  forecast.learn_fusion(class_of(a), 2);
  expect(forecast.least_fusion_ratio(class_of(near)) == 0, "one fusion is too few");
  forecast.learn_fusion(class_of(b), 3);
  const double least = forecast.least_fusion_ratio(class_of(near));
  expect(least > 1 && least < 2, "fusions that have lost tell that others will");
  expect(forecast.least_fusion_ratio(class_of(far)) < least, "the further the less sure");
  expect(forecast.least_fusion_ratio(class_of(other)) == 0, "fusions of another kind tell nothing");
}

void check_stand_ins() {
  StandIns stand_ins;
  const Case item = convolution(1, 16, 8), large = convolution(1, 64, 8);
  const std::byte* memory = nullptr;
  int shared = 0;
  for (const Case* one : {&large, &item}) {
    const Problem problem = problem_of(*one);
    for (const Routine* routine : accepting_routines(problem)) {
      const Tuning tuning = routine->tunings(problem).front();
      const auto packed = stand_ins.packed(*routine, problem, tuning);
      const auto real = routine->packed(problem, tuning);
      expect((packed == nullptr) == (real == nullptr), "stands for what is packed");
      if (packed == nullptr || !StandIns::stands_in(*routine, problem, tuning)) continue;
      expect(packed->packing().str() == real->packing().str(), "has the same sections");
      const auto* bytes = static_cast<const std::byte*>(packed->section(packed->packing().sections().front().name));
      if (memory == bytes) ++shared;
      memory = bytes;
      const auto* floats = reinterpret_cast<const float*>(bytes);
      const auto* halves = reinterpret_cast<const uint16_t*>(bytes);
      const size_t count = std::min<size_t>(packed->bytes() / sizeof(float), 1000);
      expect(std::all_of(floats, floats + count, [](float x) { return std::abs(x) >= 0.25F && std::abs(x) < 0.5F; }),
             "ordinary numbers");
      expect(std::all_of(halves, halves + count, [](uint16_t x) { return (x & 0x7f80U) == 0x3e80U; }),
             "in halves, too");
    }
  }
  expect(shared > 1, "in the same memory");
}

class OneSection : public Routine {
 public:
  explicit OneSection(bool exploits_sparsity, DType dtype, std::string name = "values")
      : Routine({.layer_type = "conv2d",
                 .algorithm = "test",
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .exploits_sparsity = exploits_sparsity}),
        dtype_(dtype),
        name_(std::move(name)) {}
  Refusal check(const Problem&) const override { return {}; }
  Packing packing(const Problem&, const Tuning&) const override { return Packing().add(name_, 4, dtype_); }
  void pack(const Problem&, const Tuning&, Packed& to) const override {
    std::fill_n(to.data(), to.bytes(), std::byte{7});
  }
  std::unique_ptr<const Prepared> prepare(const Problem&, const Tuning&, std::shared_ptr<const Packed>) const override {
    return nullptr;
  }

 private:
  DType dtype_;
  std::string name_;
};

void check_true_packings() {
  StandIns stand_ins;
  const Case item = convolution(1, 16, 8);
  const auto is_true = [&](const Routine& routine, const char* name = "values") {
    return static_cast<const std::byte*>(stand_ins.packed(routine, problem_of(item), {})->section(name))[0] ==
           std::byte{7};
  };
  expect(!is_true(OneSection(false, DType::float32)), "values do not count");
  expect(is_true(OneSection(true, DType::float32)), "a pattern's do");
  expect(is_true(OneSection(false, DType::int32)), "integers do");
  expect(!is_true(OneSection(false, DType::int32, "weights"), "weights"), "integers that are multiplied do not");
}

void check_excerpt() {
  const Case item = convolution(8, 64, 56);
  const auto part = excerpt(problem_of(item));
  expect(part && part->in[0].shape == Shape({1, 64, 56, 56}) && part->out().shape == Shape({1, 64, 56, 56}),
         "an eighth of the images");
  const Case small = convolution(8, 8, 8), one = convolution(1, 256, 14), high = convolution(1, 64, 112);
  expect(!excerpt(problem_of(small)), "none of what is short");
  expect(!excerpt(problem_of(one)), "none of one small image");
  const auto rows = excerpt(problem_of(high));
  expect(rows && rows->in[0].shape == Shape({1, 64, 28, 112}) && rows->out().shape == Shape({1, 64, 28, 112}),
         "rows of a large image");
  Case residual = convolution(16, 64, 56);
  residual.layer.post.residual = true;
  residual.in.push_back(Shape{16, 64, 56, 56});
  const auto both = excerpt(problem_of(residual));
  expect(both && both->in[1].shape == Shape({2, 64, 56, 56}), "a residual's, too");
  const Layer reshaped = layer("reshape", {{"shape", Axes{8, 1 << 23}}});
  expect(!excerpt(problem_of({reshaped, {Shape{8, 1 << 12, 1 << 11}}})), "none where nothing is multiplied");
}

void check_large_part() {
  const Case fits = convolution(1, 64, 112), large = convolution(1, 64, 1000), batch = convolution(64, 64, 112);
  expect(!large_part(problem_of(fits)), "none of what caches might hold");
  const auto images = large_part(problem_of(batch));
  expect(images && images->in[0].shape == Shape({10, 64, 112, 112}), "images enough for 64 MiB, read and written");
  const Problem whole = problem_of(large);
  const auto rows = large_part(whole);
  expect(rows && rows->in[0].shape == Shape({1, 64, 142, 1000}) && rows->out().shape == rows->in[0].shape,
         "rows enough for it");
  const auto again = excerpt(*rows);
  expect(again && again->in[0].shape == Shape({1, 64, 35, 1000}), "it has an excerpt of its own");

  auto candidates = enumerate_candidates(whole, {});
  std::vector<Candidate*> pointers;
  for (Candidate& candidate : candidates) pointers.push_back(&candidate);
  PartCandidates parts(whole, *rows, pointers);
  expect(!parts.all().empty() && std::abs(parts.scale() - 1000.0 / 142) < 1e-9, "the scale is that of the blobs");
  for (size_t i = 0; i < parts.all().size(); ++i) {
    const auto& [routine, tuning] = parts.all()[i].choice;
    const auto offered = routine->tunings(*rows);
    expect(routine == parts.whole(i).choice.routine, "each has its candidate's routine");
    expect(std::find(offered.begin(), offered.end(), tuning) != offered.end(), "and params that the part has");
  }
}

void check_probes() {
  const TensorDesc image{{2, 16, 9, 9}};
  for (const char* layout : {"nchw", "nhwc", "nchw_strided", "nchw4c", "nchw16c", "nchw4t", "nchw8t", "nchw16t"}) {
    const Schema schema = f32_nchw.with(parse_layout(layout));
    AlignedBuffer buffer;
    grow(buffer, image, schema);
    expect(buffer.size() >= bytes(image, schema), (std::string(layout) + " has room").c_str());
  }
}

void check_sparse_floor() {
  const auto is_sparse = [](const Candidate& candidate) { return candidate.choice.routine->info().exploits_sparsity; };
  const auto tried = [&](int64_t rows, double floor) {
    Layer made = layer("linear", {});
    made.set_weight("weight", sparse_ramp({64, 96}));
    SearchLimits limits;
    limits.schemas = {"float32"};
    limits.sparse_floor = floor;
    const auto candidates = enumerate_candidates(problem_of({made, {Shape{rows, 96}}}), limits);
    return std::any_of(candidates.begin(), candidates.end(), is_sparse);
  };
  expect(tried(64, 0.5) && !tried(64, 0.95), "not where too few weights are zero");
  expect(tried(1, 0.95) && tried(4, 0.95), "but where reading the weights is the time");
}

}  // namespace
}  // namespace softneuro

SN_TEST(tuning_test) {
  softneuro::check_timekeeper();
  softneuro::check_forecast();
  softneuro::check_stand_ins();
  softneuro::check_true_packings();
  softneuro::check_excerpt();
  softneuro::check_large_part();
  softneuro::check_probes();
  softneuro::check_sparse_floor();
}
