// A region under a clock that is not the machine's: what its runs cost is given.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/region.h"
#include "tests/expect.h"

namespace softneuro::test {

constexpr int64_t ms = 1'000'000;

// What runs cost, and what they have cost so far.
struct World {
  std::function<int64_t(int64_t size)> host_ns, net_ns;
  // By size, which of them have graphs that differ in the size alone.
  std::function<int64_t(int64_t size)> structure = [](int64_t) { return 0; };
  int64_t lower_ns = ms;
  int64_t plan_ns = 0;  // by layer, without measuring
  double error = 0;
  int64_t now = 0;
  std::map<int64_t, int> prepared;  // by size
  int planned = 0;                  // anew, nothing measured
  std::vector<std::string> log;
};

inline Options options_for_test() {
  Options options;
  options.min_region_size = 1;
  options.time_budget_s = 0.5;
  return options;
}

// As many layers as the number of the structure has digits, which say what each of them reads.
inline Graph graph_of(int64_t size, int64_t structure) {
  Graph graph;
  std::vector<int> blobs{graph.add_input("x", TensorDesc{Shape{size}})};
  do {
    const auto count = static_cast<int64_t>(blobs.size());
    Layer layer;
    layer.type = "activation";
    layer.name = "a" + std::to_string(count);
    layer.attrs.set("function", std::string("relu"));
    layer.inputs = {blobs[static_cast<size_t>(structure % count)]};
    structure /= count;
    blobs.push_back(graph.add_layer(std::move(layer)));
    graph.add_output(blobs.back());
  } while (structure > 0);
  return graph;
}

class FakeCall : public RegionCall {
 public:
  FakeCall(World& world, int64_t size) : world_(world), size_(size) {}
  LoweredCall lower() override {
    world_.now += world_.lower_ns;
    ++world_.prepared[size_];
    LoweredCall lowered;
    lowered.graph = graph_of(size_, world_.structure(size_));
    return lowered;
  }
  void run_host() override {
    world_.now += world_.host_ns(size_);
    host_ran_ = true;
  }
  void run_net(const Ready&) override {
    world_.now += world_.net_ns(size_);
    net_ran_ = true;
  }
  double error(double) override { return world_.error; }
  int threads() const override { return 1; }
  std::string inputs() const override { return std::to_string(size_); }
  // Whether that has run, whose results a door takes.
  bool ran(Region::Side side) const { return side == Region::Side::net ? net_ran_ : host_ran_; }

 private:
  World& world_;
  int64_t size_;
  bool host_ran_ = false, net_ran_ = false;
};

// A region, and a caller that does what a door does.
class Caller {
 public:
  Caller(World& world, Options options = options_for_test(), const std::string& content = "c") : world_(world) {
    RegionSettings settings;
    settings.name = "r";
    settings.content = content;
    settings.host = "test";
    settings.options = std::move(options);
    settings.now = [this] { return world_.now; };
    settings.plan = [this](const Graph& graph, const Options& given, int threads, const Progress& progress) {
      const SharedPlan made = new_plan(graph, given, threads, progress);
      KnownPlan plan = *made;
      const int64_t ns = world_.plan_ns * static_cast<int64_t>(graph.layers().size());
      if (given.tune != TuneMode::profile) ++world_.planned, world_.now += ns;
      plan.result.stages = {{"solve", 1e-9 * static_cast<double>(ns), 1}};
      return std::make_shared<const KnownPlan>(std::move(plan));
    };
    region = std::make_unique<Region>(std::move(settings));
  }
  // "net" or "host".
  std::string call(int64_t size) {
    const Signature signature{size};
    if (const auto ready = region->find(signature, weights)) {
      world_.now += ready->net != nullptr ? world_.net_ns(size) : world_.host_ns(size);
      return ready->net != nullptr ? "net" : "host";
    }
    if (looks_first && region->first_sight(signature)) {
      world_.now += world_.host_ns(size);
      return "host";
    }
    FakeCall call(world_, size);
    const Region::Side side = region->run(signature, weights, call);
    expect(call.ran(side), "the side whose results are told has run");
    return side == Region::Side::net ? "net" : "host";
  }

  std::unique_ptr<Region> region;
  WeightSet weights{1, 0};
  bool looks_first = false;

 private:
  World& world_;
};

}  // namespace softneuro::test
