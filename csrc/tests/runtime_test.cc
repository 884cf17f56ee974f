// The runtime under a clock that is not the machine's: what it takes over any sequence of shapes, and what it decides.
#include "runtime/region.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/expect.h"
#include "tests/runtime_sequences.h"
#include "tests/runtime_world.h"
#include "tune/records/cost_keys.h"

namespace softneuro {
namespace {

using test::Caller;
using test::expect;
using test::FakeCall;
using test::ms;
using test::options_for_test;
using test::World;

void check_turns() {
  World world;
  world.host_ns = [](int64_t) { return 10 * ms; };
  world.net_ns = [](int64_t) { return 4 * ms; };
  Caller caller(world, options_for_test(), "turns");
  expect(caller.call(8) == "net", "the first signature is prepared at once");
  expect(caller.call(9) == "host" && world.prepared[9] == 0, "a shape seen once is not prepared for");
  caller.call(9);
  expect(world.prepared[9] == 1, "one that recurs is, where it pays");
  for (int i = 0; i < 8; ++i) caller.call(9);
  expect(caller.call(9) == "net" && world.prepared[9] == 1, "and wins");
  world.error = 1;
  caller.call(10), caller.call(10);
  expect(caller.call(10) == "host", "too large an error loses");
  world.error = 0;
  world.net_ns = [](int64_t size) { return size == 11 ? 20 * ms : 4 * ms; };
  for (int i = 0; i < 12; ++i) caller.call(11);
  expect(caller.call(11) == "host" && caller.call(9) == "net", "a shape that loses does not take others with it");
  const auto shapes = caller.region->shapes();
  const auto lost = std::find_if(shapes.begin(), shapes.end(), [](const auto& s) { return s.first[0] == 11; });
  expect(lost->second.host.find("against the host's") != std::string::npos, "with the reason");
  Caller again(world, options_for_test(), "turns");
  again.call(8), again.call(11), again.call(11);
  expect(again.call(11) == "host" && world.prepared[11] == 1, "a verdict that is known needs no net");
}

void check_first_sights() {
  World world;
  world.host_ns = [](int64_t) { return 10 * ms; };
  world.net_ns = [](int64_t) { return 4 * ms; };
  Caller caller(world, options_for_test(), "sights");
  Region& region = *caller.region;
  expect(!region.first_sight(Signature{8}), "there is no plan yet");
  caller.call(8);
  expect(!region.first_sight(Signature{8}), "it has a net");
  caller.looks_first = true;
  expect(caller.call(9) == "host" && !region.first_sight(Signature{9}), "a signature is new once");
  expect(caller.call(9) == "host" && world.prepared[9] == 0, "then the host is timed");
  caller.call(9);
  expect(world.prepared[9] == 1, "then a net is prepared");
  Region::pause_first_sights(true);
  expect(!region.first_sight(Signature{10}), "none is to be left to the host for now");
  Region::pause_first_sights(false);
  expect(region.first_sight(Signature{10}), "until that ends");
  Options all_nets = options_for_test();
  all_nets.never_worse = false;
  Caller other(world, all_nets, "no sights");
  other.call(8);
  expect(!other.region->first_sight(Signature{9}), "nothing is left to the host where it is not asked");
}

void check_many_shapes() {
  World world;
  world.host_ns = [](int64_t) { return 10 * ms; };
  world.net_ns = [](int64_t) { return 4 * ms; };
  Caller caller(world, options_for_test(), "many");
  caller.call(8);
  for (int round = 0; round < 12; ++round) {
    for (int64_t size = 16; size < 16 + 300; ++size) caller.call(size);
  }
  world.prepared.erase(8);  // the first
  const bool once =
      std::all_of(world.prepared.begin(), world.prepared.end(), [](const auto& p) { return p.second == 1; });
  expect(once && world.prepared.size() > 290, "300 shapes by turns are prepared once each");
  expect(caller.region->held_up().empty(), "and are not taken for weights that change");
}

void check_changed_weights() {
  World world;
  world.host_ns = [](int64_t) { return ms; };
  world.net_ns = [](int64_t) { return ms / 2; };
  world.lower_ns = 500 * ms;
  Caller caller(world, options_for_test(), "weights");
  caller.call(8);
  int nets = 0;
  for (int i = 0; i < 100; ++i) {
    ++caller.weights.epoch;
    nets += caller.call(8) == "net" ? 1 : 0;
  }
  expect(nets >= 15 && nets < 20, "weights that change at every call are not packed at every call");
  expect(!caller.region->held_up().empty(), "and that is said");
  caller.region->start_afresh();
  expect(caller.region->held_up().empty() && caller.call(8) == "net", "a refresh ends it");
}

// What the host raises is the caller's, and nothing is known of the shape then.
void check_errors_of_the_host() {
  struct Raising : FakeCall {
    using FakeCall::FakeCall;
    void run_host() override { throw std::runtime_error("the user's"); }
  };
  World world;
  world.host_ns = world.net_ns = [](int64_t) { return ms; };
  Caller caller(world, options_for_test(), "raising");
  Raising call(world, 8);
  std::string text;
  try {
    caller.region->run({8}, caller.weights, call);
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  expect(text == "the user's", "it is thrown as it is");
  expect(caller.region->find(Signature{8}, caller.weights) == nullptr, "and decides nothing");
}

void check_no_host() {
  struct Hostless : FakeCall {
    using FakeCall::FakeCall;
    void run_host() override { throw NoHost("there is none"); }
  };
  World world;
  world.net_ns = [](int64_t) { return ms; };
  Caller caller(world, options_for_test(), "hostless");
  for (const int64_t size : {8, 9}) {
    Hostless call(world, size);
    expect(caller.region->run({size}, caller.weights, call) == Region::Side::net,
           "without a host there is nothing to lose to");
  }
  world.structure = [](int64_t size) { return size; };
  world.plan_ns = 1000 * ms;
  for (const int64_t size : {3, 4, 3}) {
    Hostless call(world, size);
    expect(caller.region->run({size}, caller.weights, call) == Region::Side::net, "nor credit to wait for");
  }
}

// What is declined has not been tried.
void check_declined() {
  struct Empty : FakeCall {
    using FakeCall::FakeCall;
    std::string declined() const override { return "it is empty"; }
  };
  World world;
  world.host_ns = [](int64_t) { return ms; };
  world.net_ns = [](int64_t) { return ms / 2; };
  Caller caller(world, options_for_test(), "declined");
  for (const int64_t size : {1, 2, 3, 4, 5}) {
    Empty call(world, size);
    expect(caller.region->run({size}, caller.weights, call) == Region::Side::host, "the host runs it");
  }
  expect(caller.call(8) == "net" && world.planned == 0, "the first one that is not is tuned");
}

// Such an error comes from an overflow, most likely, which says nothing of other inputs.
void check_errors_that_are_no_numbers() {
  World world;
  world.host_ns = [](int64_t) { return 10 * ms; };
  world.net_ns = [](int64_t) { return 4 * ms; };
  for (const double error : {static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    world.error = error;
    Caller overflows(world, options_for_test(), "no number");
    expect(overflows.call(8) == "host", "nothing is known to be bearable");
  }
  world.error = 0;
  Caller caller(world, options_for_test(), "no number");
  expect(caller.call(8) == "net", "and nothing is remembered");
}

// A plan is known to err too much on these weights, and one that errs less cannot be paid for yet.
void check_credit_for_another_plan() {
  World world;
  world.host_ns = [](int64_t) { return 10 * ms; };
  world.net_ns = [](int64_t) { return 4 * ms; };
  world.plan_ns = 1000 * ms;
  {
    Caller caller(world, options_for_test(), "exacter");
    for (const int64_t size : {8, 9}) {
      for (int i = 0; i < 20; ++i) caller.call(size);
    }
    expect(caller.call(9) == "net", "the plan is thought to be bearable");
  }
  CostDb& db = shared_cost_db();
  int spoilt = 0;
  for (const CostDb::Entry& entry : db.entries()) {
    if (entry.kind != ErrorRecord::kind || !entry.key.signature.starts_with("region exacter 9,")) continue;
    db.add(entry.key, ErrorRecord{1e-3});
    ++spoilt;
  }
  expect(spoilt > 0, "errors are recorded");
  Options as_in_another_process = options_for_test();  // which plans for itself
  as_in_another_process.time_budget_s = 0.4;
  Caller again(world, as_in_another_process, "exacter");
  again.call(8);
  for (int i = 0; i < 60; ++i) expect(again.call(9) == "host", "the host runs it meanwhile");
  expect(world.prepared[9] > 1 && world.planned == 0, "a plan was looked for, and none is paid for");
}

void check_concurrent_calls() {
  World world;
  world.host_ns = world.net_ns = [](int64_t) { return ms; };
  Caller caller(world, options_for_test(), "threads");
  caller.call(8);
  std::atomic<uint64_t> epoch{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      World own;
      own.host_ns = own.net_ns = [](int64_t) { return ms; };
      for (int i = 0; i < 200; ++i) {
        const int64_t size = 16 + (i + t) % 5;
        FakeCall call(own, size);
        const WeightSet weights{1, epoch};
        if (caller.region->find(Signature{size}, weights) == nullptr) caller.region->run({size}, weights, call);
        if (i % 50 == t) ++epoch;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect(caller.region->shapes().size() == 6, "each shape is known once");
}

// What is decided for weights with some zeros, or for none, is not decided for others.
void check_patterns() {
  const auto linear = [](int zeros_of_ten) {
    std::vector<float> values(64 * 64, 1.0F);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 7 % 10) < zeros_of_ten ? 0.0F : 1.0F;
    Graph graph;
    Layer layer;
    layer.type = "linear";
    layer.inputs = {graph.add_input("x", TensorDesc{Shape{4, 64}}, f32_nchw)};
    layer.set_weight("weight", constant_from({64, 64}, std::move(values)));
    graph.add_output(graph.add_layer(std::move(layer)));
    return graph;
  };
  Options options = options_for_test();
  options.tune = TuneMode::off;
  const Graph dense = linear(0), sparse = linear(5), sparser = linear(8);
  expect(patterns_of(dense).empty(), "a dense graph has no patterns");
  const SharedPlan plan = new_plan(dense, options, 1, {});
  expect(near_plan(dense, options, 1) == plan, "the same zeros have the same plan");
  expect(near_plan(sparse, options, 1) == nullptr, "other zeros have a plan of their own");
  const SharedPlan carried = near_plan(sparse, options, 1, true);
  expect(carried != nullptr && carried->result.carried, "a plan for other zeros is carried over where any will do");
  const SharedPlan own = new_plan(sparse, options, 1, {}), other = new_plan(sparser, options, 1, {});
  expect(near_plan(sparse, options, 1) == own && near_plan(sparser, options, 1) == other, "each its own");
  expect(choices_of(*own) != choices_of(*other), "verdicts on the same routines are apart");
}

}  // namespace
}  // namespace softneuro

SN_TEST(runtime_test) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("runtime_test_" + std::to_string(std::random_device()()));
  setenv("SOFTNEURO_CACHE_DIR", folder.c_str(), 1);
  softneuro::check_turns();
  softneuro::check_first_sights();
  softneuro::test::check_the_rule();
  softneuro::test::check_that_it_wins();
  softneuro::test::check_other_structures();
  softneuro::test::check_saving();
  softneuro::test::check_sizes_that_stay();
  softneuro::check_many_shapes();
  softneuro::check_changed_weights();
  softneuro::check_errors_of_the_host();
  softneuro::check_no_host();
  softneuro::check_declined();
  softneuro::check_errors_that_are_no_numbers();
  softneuro::check_credit_for_another_plan();
  softneuro::check_concurrent_calls();
  softneuro::check_patterns();
  std::filesystem::remove_all(folder);
}
