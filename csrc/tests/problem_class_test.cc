// These tests show what a problem's class tells apart, and that routines are asked about nothing else.
#include <string>
#include <vector>

#include "base/error.h"
#include "layers/contract/registry.h"
#include "tests/expect.h"
#include "tests/layer_cases.h"
#include "tune/search/candidates.h"

namespace softneuro {
namespace {

using test::expect;

constexpr int64_t rows = 64, columns = 640;

// As many values as are asked for, one after the other in vectors of 16 rows, or each in a vector of its own.
Constant pruned(int64_t kept, bool in_vectors) {
  std::vector<float> values(rows * columns, 0.0f);
  for (int64_t i = 0; i < kept; ++i) {
    const int64_t vector = in_vectors ? i / 16 : i, row = in_vectors ? i % 16 : i * 7 % 16;
    const int64_t column = vector % columns, first = vector / columns * 16;
    values[static_cast<size_t>((first + row) * columns + column)] = 0.5f;
  }
  return constant_from({rows, columns}, std::move(values));
}

Case linear(Constant weight) {
  Layer made = layer("linear", {});
  made.set_weight("weight", std::move(weight));
  return {std::move(made), {Shape{7, columns}}};
}

std::vector<std::string> names(const Case& item) {
  std::vector<std::string> list;
  for (const Candidate& candidate : enumerate_candidates(problem_of(item), {})) list.push_back(candidate.descriptor);
  return list;
}

ProblemClass class_of(const Case& item) { return ProblemClass(problem_of(item)); }

void check_zeros() {
  // 97.8 and 98.4 % of zeros, with vectors of zeros and without.
  const Case few = linear(pruned(901, true)), fewer = linear(pruned(655, true)), apart = linear(pruned(901, false));
  expect(class_of(few).str() == class_of(fewer).str(), "numbers of zeros that round to one are one class");
  expect(names(few) == names(fewer), "which has the same candidates");
  expect(class_of(few).dense() == class_of(linear(ramp({rows, columns}))).dense(),
         "all weights have dense times in common");
  expect(class_of(few).str() != class_of(linear(ramp({rows, columns}))).str(), "but not candidates");
  expect(class_of(few).kind() != class_of(linear(ramp({rows, columns}))).kind(), "nor do they tell about each other");
  const WeightTraits in_vectors = pruned(901, true)->traits(), single = pruned(901, false)->traits();
  expect(in_vectors.zero_vectors == 16, "vectors of zeros are a trait");
  expect(single.zero_vectors == 16 && class_of(apart).str() != "",
         "where so few are kept, most vectors are zero anyway");
}

std::shared_ptr<const Quantization> grid(float scale, std::vector<int32_t> zeros, int axis = -1,
                                         bool is_signed = false) {
  auto made = std::make_shared<Quantization>();
  made->scales.assign(zeros.size(), scale);
  made->zero_points = std::move(zeros);
  made->axis = axis;
  if (is_signed) made->least = -128, made->most = 127;
  return made;
}

Problem pool(const Layer& layer, std::shared_ptr<const Quantization> in, std::shared_ptr<const Quantization> out) {
  Problem problem{&layer, {TensorDesc{{1, 8, 6, 6}}}, TensorDesc{{1, 8, 3, 3}}, 1};
  problem.in[0].quantization = std::move(in);
  problem.outs[0].quantization = std::move(out);
  return problem;
}

void check_grids() {
  const Layer max = layer("pool2d", {{"function", std::string("max")}, {"kernel", Axes{2, 2}}, {"stride", Axes{2, 2}}});
  const ProblemClass same(pool(max, grid(0.5f, {3}), grid(0.5f, {3})));
  expect(same.str() == ProblemClass(pool(max, grid(0.25f, {7}), grid(0.25f, {7}))).str(), "scales are no matter");
  expect(same.str() != ProblemClass(pool(max, grid(0.5f, {3}), grid(0.25f, {3}))).str(),
         "but which grids are the same");
  expect(same.str() != ProblemClass(pool(max, grid(0.5f, {0}), grid(0.5f, {0}))).str(), "and whether zero is zero");
  expect(same.kind() != ProblemClass(pool(max, nullptr, nullptr)).kind(), "floats tell nothing about bytes");
}

void check_zero_points() {
  const auto memory = std::make_shared<std::vector<int8_t>>(rows * columns, int8_t{1});
  const auto weight = [&](std::vector<int32_t> zeros, float scale) {
    TensorDesc desc{{rows, columns}};
    desc.quantization = grid(scale, std::move(zeros), 0, true);
    return linear(
        std::make_shared<const ConstantData>(desc, DType::qint8, ConstantData::Memory(memory, memory->data())));
  };
  std::vector<int32_t> zeros(rows, 0), ones(rows, 5), several(rows, 5);
  several[9] = 6;
  expect(class_of(weight(zeros, 0.1f)).str() == class_of(weight(zeros, 0.2f)).str(), "scales of weights are no matter");
  expect(class_of(weight(zeros, 0.1f)).str() != class_of(weight(ones, 0.1f)).str(), "zero points are");
  expect(class_of(weight(ones, 0.1f)).str() != class_of(weight(several, 0.1f)).str(), "and whether there are several");
}

void check_values() {
  const Case item = linear(ramp({rows, columns}));
  const ProblemClass cls = class_of(item);
  bool refused = false;
  try {
    cls.problem().layer->weight("weight")->values();
  } catch (const Error&) {
    refused = true;
  }
  expect(refused, "a class has no values");
  Case named = linear(pruned(0, true));
  named.layer.name = "fc";
  expect(class_of(named).problem().layer->name.empty(), "nor names");
}

void check_reshaped() {
  const Constant weight = pruned(901, true);
  const ConstantData reshaped(weight, TensorDesc{{rows, columns, 1, 1}});
  expect(reshaped.values() == weight->values() && reshaped.identity() == weight->identity(), "the same memory");
  expect(reshaped.traits() == weight->traits() && reshaped.at_hand() && reshaped.has_rows(), "and traits");
  bool refused = false;
  try {
    const ConstantData wrong(weight, TensorDesc{{rows, columns, 2}});
  } catch (const Error&) {
    refused = true;
  }
  expect(refused, "another number of elements is refused");
}

// A routine whose second input has a schema of its own.
class TwoSchemas final : public Routine {
 public:
  TwoSchemas()
      : Routine({.layer_type = "binary",
                 .algorithm = "two",
                 .isa_in_name = false,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .others = {f32_nchw.with(DType::bfloat16)}}) {}
  Refusal check(const Problem&) const override { return {}; }
  std::unique_ptr<const Prepared> prepare(const Problem&, const Tuning&, std::shared_ptr<const Packed>) const override {
    return nullptr;
  }
};

void check_descriptor() {
  const TwoSchemas routine;
  expect(routine.descriptor() == "binary/cpu:float32:nchw,cpu:bfloat16:nchw/two",
         "a descriptor has all inputs' schemas");
  Layer sum = layer("binary", {});
  sum.post.residual = true;
  const Problem problem{&sum, {TensorDesc{{2, 3}}, TensorDesc{{2, 3}}, TensorDesc{{2, 3}}}, TensorDesc{{2, 3}}, 1};
  expect(routine.input_schema(problem, 0) == f32_nchw && routine.input_schema(problem, 2) == f32_nchw &&
             routine.input_schema(problem, 1).dtype == DType::bfloat16,
         "each comes in its own");
}

}  // namespace
}  // namespace softneuro

SN_TEST(problem_class_test) {
  softneuro::check_zeros();
  softneuro::check_grids();
  softneuro::check_zero_points();
  softneuro::check_values();
  softneuro::check_reshaped();
  softneuro::check_descriptor();
}
