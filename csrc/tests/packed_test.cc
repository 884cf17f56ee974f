// Packings: sections, typed access, parts; what every routine declares and packs; what caches give to each other. And
// params by name, which packings depend on.
#include "layers/contract/packed.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "layers/contract/params.h"
#include "net/net.h"
#include "tests/expect.h"
#include "tests/layer_cases.h"

namespace softneuro {
namespace {

using test::expect;

template <typename Body>
void expect_error(const Body& body, const std::string& part) {
  std::string message = "nothing thrown";
  try {
    body();
  } catch (const Error& error) {
    message = error.what();
  }
  const bool right = message.find(part) != std::string::npos;
  expect(right, ("'" + part + "' is in: " + message).c_str());
}

void check_sections() {
  Packing packing;
  packing.add("weights", 100, DType::bfloat16, 90).add("scales", 3).add("indices", 5, DType::int32);
  expect(packing.str() == "weights:bfloat16:100 scales:float32:3 indices:int32:5", "the text of a packing");
  expect(packing.sections()[1].offset == 256 && packing.sections()[2].offset == 320, "sections begin with lines");
  expect(packing.bytes() == 340, "memory ends with the last section");
  expect(packing.value_bytes() == 90 * 2 + 3 * 4 + 5 * 4, "what pads is not counted");
  expect_error([&] { packing.add("scales", 1); }, "two sections 'scales'");
  expect(Packing().empty() && Packing().bytes() == 0, "a packing may be of nothing");

  Packed packed(packing);
  expect(reinterpret_cast<uintptr_t>(packed.data()) % 64 == 0, "memory is aligned");
  expect(reinterpret_cast<std::byte*>(packed.at<int32_t>("indices")) == packed.data() + 320, "sections are found");
  expect(std::all_of(packed.data() + 200, packed.data() + 256, [](std::byte b) { return b == std::byte{0}; }),
         "bytes between sections are zero");
  const auto shared = std::make_shared<const Packed>(packed);
  expect_error([&] { shared->at<float>("bias"); }, "no section 'bias'");
  expect_error([&] { shared->at<float>("weights"); }, "holds bfloat16, not float32");
  expect_error([&] { shared->find<float>("indices"); }, "holds int32, not float32");
  expect(shared->find<float>("bias") == nullptr && find_packed<float>(nullptr, "bias") == nullptr, "what is not there");
}

void check_parts() {
  Packing first, second, whole;
  first.add("weights", 7).add("bias", 2);
  second.add("weights", 3, DType::int8).add("0", first);
  whole.add("own", 1).add("0", first).add("10", Packing()).add("1", second);
  expect(whole.str() ==
             "own:float32:1 0.weights:float32:7 0.bias:float32:2 1.weights:int8:3 1.0.weights:float32:7 "
             "1.0.bias:float32:2",
         "parts have their names in front");
  expect(whole.part("1").str() == second.str() && whole.part("1").bytes() == second.bytes(), "a part is as declared");
  expect(whole.value_bytes() == 4 + 2 * first.value_bytes() + 3, "parts count");

  Packed packed(whole);
  Packed part = packed.part("1");
  part.part("0").at<float>("bias")[1] = 8;
  expect(packed.at<float>("1.0.bias")[1] == 8, "parts are the same memory");
  const auto shared = std::make_shared<const Packed>(packed);
  const auto inner = part_of(part_of(shared, "1"), "0");
  expect(inner->at<float>("bias") == packed.at<float>("1.0.bias"), "and parts of parts");
  expect(part_of(shared, "10") == nullptr && packed.part("2").packing().empty(), "parts of nothing");
  expect(part_of(nullptr, "1") == nullptr, "of no packing");
}

SN_PARAMS(SomeParams, tile, row_block, split);

void check_params() {
  expect(SomeParams::names() == std::vector<std::string>{"tile", "row_block", "split"}, "names of params");
  const SomeParams params = SomeParams::of({4, 28, 1});
  expect(params.tile == 4 && params.row_block == 28 && params.split == 1, "params by name");
  expect(Tuning(params) == Tuning{4, 28, 1}, "params as integers");
  expect_error([] { SomeParams::of({4, 28}); }, "tile, row_block, split was given 2 values");
  expect_error([] { SomeParams::of({4, 28, 1, 0}); }, "was given 4 values");
}

Case weighted(Layer made, const Shape& weight, int64_t outputs, std::vector<Shape> in, bool bias) {
  made.set_weight("weight", ramp(weight));
  if (bias) made.set_weight("bias", ramp({outputs}));
  return {std::move(made), std::move(in)};
}

std::vector<Case> packing_cases() {
  std::vector<Case> list = cases();
  const Shape image{1, 32, 9, 11};
  const auto add = [&](const Layer& made, const Shape& weight, int64_t outputs, const Shape& in) {
    for (const bool bias : {false, true}) list.push_back(weighted(made, weight, outputs, {in}, bias));
  };
  const Layer same = layer("conv2d", {{"padding", Axes{1, 1, 1, 1}}});
  add(same, {48, 32, 3, 3}, 48, image);
  add(same, {5, 32, 3, 3}, 5, image);
  add(same, {20, 3, 3, 3}, 20, {2, 3, 9, 11});
  add(layer("conv2d", {}), {50, 32, 1, 1}, 50, image);
  add(layer("conv2d", {{"groups", int64_t{2}}}), {64, 16, 3, 3}, 64, image);
  add(layer("conv2d", {{"groups", int64_t{32}}}), {32, 1, 3, 3}, 32, image);
  add(layer("conv1d", {}), {20, 32, 3}, 20, {1, 32, 9});
  add(layer("conv_transpose2d", {}), {32, 6, 2, 2}, 6, image);
  add(layer("linear", {}), {41, 130}, 41, {3, 130});
  add(layer("linear", {}), {256, 256}, 256, {200, 256});
  add(layer("batched_linear", {}), {3, 41, 30}, 41, {3, 5, 30});
  add(layer("layer_norm", {{"axes", int64_t{1}}, {"eps", 1e-5}}), {11}, 11, image);
  Layer block = layer("depthwise_block", {{"padding", Axes{1, 1, 1, 1}}});
  block.set_weight("expand_weight", ramp({40, 32, 1, 1}));
  block.set_weight("depthwise_weight", ramp({40, 1, 3, 3}));
  list.push_back({block, {image}});
  block.set_weight("project_weight", ramp({24, 40, 1, 1}));
  block.set_weight("project_bias", ramp({24}));
  list.push_back({block, {image}});
  block.set_weight("expand_weight", ramp({40, 3, 3, 3}));
  block.attrs.set("expand_padding", Axes{1, 1, 1, 1});
  list.push_back({block, {Shape{1, 3, 9, 11}}});
  Layer pooled = layer("conv_pool", {{"padding", Axes{1, 1, 1, 1}},
                                     {"pool_function", "max"},
                                     {"pool_kernel", Axes{2, 2}},
                                     {"pool_stride", Axes{2, 2}}});
  pooled.set_weight("conv_weight", ramp({20, 3, 3, 3}));
  list.push_back({pooled, {Shape{1, 3, 10, 12}}});
  return list;
}

// Every element is packed, and nothing else: the same whatever the memory held before.
void check_packed(const Problem& problem, const Routine& routine, const Tuning& tuning) {
  const Packing packing = routine.packing(problem, tuning);
  const std::string where = routine.descriptor(tuning) + " of " + ProblemClass(problem).str();
  Packed packed[2] = {Packed(packing), Packed(packing)};
  for (int i = 0; i < 2; ++i) {
    for (const Packing::Section& section : packing.sections()) {
      std::memset(packed[i].data() + section.offset, i == 0 ? 0x33 : 0xcc, section.bytes());
      expect(section.offset % 64 == 0, (where + ": sections are aligned").c_str());
      expect(section.values <= section.count, (where + ": a section has room for its values").c_str());
    }
    if (!packing.empty()) routine.pack(problem, tuning, packed[i]);
  }
  const bool same = packing.empty() || std::memcmp(packed[0].data(), packed[1].data(), packing.bytes()) == 0;
  expect(same, (where + ": all that is declared is packed").c_str());
  expect(routine.packed_bytes(problem, tuning) == packing.value_bytes(), (where + ": bytes are foretold").c_str());
  const auto whole = routine.packed(problem, tuning);
  expect(packing.empty() ? whole == nullptr : std::memcmp(whole->data(), packed[0].data(), packing.bytes()) == 0,
         (where + ": packed is what pack makes").c_str());
}

void check_routines() {
  size_t checked = 0;
  for (const Case& item : packing_cases()) {
    const Problem problem = problem_of(item);
    for (const Routine* routine : accepting_routines(problem)) {
      for (const Tuning& tuning : routine->tunings(problem)) check_packed(problem, *routine, tuning), ++checked;
    }
  }
  expect(checked > 200, "routines are found");
}

// Prepared routines keep packings for each other.
void check_sharing() {
  for (const Case& item : packing_cases()) {
    const Problem problem = problem_of(item);
    if (item.layer.weights.empty()) continue;
    for (const Routine* routine : accepting_routines(problem)) {
      const RoutineChoice choice{routine, routine->tunings(problem).front()};
      PackedCache cache;
      auto packed = cache.get(choice, problem);
      if (packed == nullptr) continue;
      const Packed* const made = packed.get();
      const auto prepared = routine->prepare(problem, choice.tuning, std::move(packed));
      expect(cache.get(choice, problem).get() == made, (choice.descriptor() + " keeps its packing").c_str());
    }
  }
}

// What one cache has is taken by another; sections that are not the routine's are refused in a line.
void check_adoption() {
  const Case item =
      weighted(layer("conv2d", {{"padding", Axes{1, 1, 1, 1}}}), {32, 32, 3, 3}, 32, {{1, 32, 12, 12}}, true);
  const Problem problem = problem_of(item);
  std::string logged;
  set_log_sink([&](LogLevel, const std::string& message) { logged += message; });
  for (const Routine* routine : accepting_routines(problem)) {
    const RoutineChoice choice{routine, routine->tunings(problem).front()};
    PackedCache first, second, third;
    const auto packed = first.get(choice, problem);
    if (packed == nullptr) continue;
    std::vector<PackedCache::Item> items = first.items();
    second.adopt(items);
    expect(items.size() == 1 && second.get(choice, problem) == packed, "a packing is taken as it is");
    expect(logged.empty(), "without a word");
    items[0].packed = std::make_shared<const Packed>(Packing().add("weights", packed->packing().sections()[0].count));
    third.adopt(items);
    const auto own = third.get(choice, problem);
    expect(own->packing().str() == packed->packing().str(), "another packing is not taken");
    expect(logged.find("has 'weights:float32:") != std::string::npos, "and that is said");
    logged.clear();
  }
  set_log_sink({});
}

}  // namespace
}  // namespace softneuro

SN_TEST(packed_test) {
  softneuro::check_sections();
  softneuro::check_parts();
  softneuro::check_params();
  softneuro::check_routines();
  softneuro::check_sharing();
  softneuro::check_adoption();
}
