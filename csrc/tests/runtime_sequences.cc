#include "tests/runtime_sequences.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/expect.h"
#include "tests/runtime_world.h"

namespace softneuro::test {
namespace {

using Sizes = std::vector<int64_t>;

Sizes growing(int count) {
  Sizes sizes;
  for (int i = 0; i < count; ++i) sizes.push_back(16 + i);
  return sizes;
}

Sizes by_turns(int kinds, int count) {
  Sizes sizes;
  for (int i = 0; i < count; ++i) sizes.push_back(16 + i % kinds);
  return sizes;
}

Sizes drawn(std::mt19937& random, int kinds, int count, double skew) {
  std::vector<double> weights;
  for (int i = 0; i < kinds; ++i) weights.push_back(std::pow(i + 1.0, -skew));
  std::discrete_distribution<int> kind(weights.begin(), weights.end());
  Sizes sizes;
  for (int i = 0; i < count; ++i) sizes.push_back(16 + kind(random));
  return sizes;
}

// Each size as often as it takes to be prepared, and never again.
Sizes twice_and_gone(int count) {
  Sizes sizes;
  for (int i = 0; i < count; ++i) sizes.push_back(16 + i / 2);
  return sizes;
}

// A prompt, then one token for long, then the next prompt.
Sizes decoding(std::mt19937& random, int prompts) {
  std::uniform_int_distribution<int64_t> tokens(2, 64);
  Sizes sizes;
  for (int i = 0; i < prompts; ++i) {
    sizes.push_back(tokens(random));
    sizes.insert(sizes.end(), 30, 1);
  }
  return sizes;
}

// One size between all others.
Sizes between(const Sizes& others, int64_t size) {
  Sizes sizes;
  for (const int64_t other : others) sizes.insert(sizes.end(), {other, size});
  return sizes;
}

Options own_options() {
  static int count = 0;
  Options options = options_for_test();
  options.time_budget_s -= 1e-4 * ++count;  // plans are known by the options, too
  return options;
}

// A region whose first call has been, with the rule checked after every other.
class Player {
 public:
  Player(World& world, int64_t first, bool looks_first = false)
      : world_(world), caller_(world, own_options(), content()) {
    caller_.looks_first = looks_first;
    caller_.call(first);
    start_ = world.now;
  }
  std::string call(int64_t size) {
    const std::string side = caller_.call(size);
    host_ += world_.host_ns(size);
    longest_net_ = std::max(longest_net_, world_.net_ns(size));
    const double allowed = 1.1 * static_cast<double>(host_) + static_cast<double>(Credit::start_ns + longest_net_);
    held_ = held_ && static_cast<double>(world_.now - start_) <= allowed;
    return side;
  }
  void call(const Sizes& sizes) {
    for (const int64_t size : sizes) call(size);
  }
  void check(const std::string& what) const {
    expect(held_, (what + ": no sequence takes longer than the rule says").c_str());
  }
  // Total time over the host's.
  double ratio() const { return static_cast<double>(world_.now - start_) / static_cast<double>(host_); }

 private:
  static std::string content() {
    static int count = 0;
    return "c" + std::to_string(++count);
  }

  World& world_;
  Caller caller_;
  int64_t start_ = 0, host_ = 0, longest_net_ = 0;
  bool held_ = true;
};

struct Drawn {
  World world;
  int64_t first = 8;
  Sizes sizes;
  std::string what;
};

// Costs and a sequence. `dear`: preparing may cost more than a second of the host's work puts into the credit.
Drawn drawn_world(std::mt19937& random, int round, bool dear) {
  std::uniform_real_distribution<double> unit(0, 1);
  Drawn made;
  World& world = made.world;
  const double base = 20e3 * std::pow(200, unit(random)), ratio = 0.3 * std::pow(10, unit(random));
  const double spread = unit(random);
  world.host_ns = [=](int64_t size) { return static_cast<int64_t>(base * (1 + spread * double(size % 97) / 97)); };
  world.net_ns = [=](int64_t size) {
    const double own = ratio * (size % 7 == 0 ? 3 : 1);  // some shapes lose
    return static_cast<int64_t>(own * base * (1 + spread * double(size % 97) / 97));
  };
  world.lower_ns = static_cast<int64_t>(100e3 * std::pow(dear ? 300 : 50, unit(random)));
  world.plan_ns = static_cast<int64_t>(100e3 * std::pow(dear ? 500 : 100, unit(random)));
  const std::vector<std::pair<std::string, std::function<int64_t(int64_t)>>> structures{
      {"one structure", [](int64_t) { return 0; }},
      {"one of size 1", [](int64_t size) { return size == 1 ? 0 : 1; }},
      {"one of small sizes", [](int64_t size) { return size < 24 ? 0 : 1; }},
      {"five structures", [](int64_t size) { return size % 5; }},
      {"a structure for each size", [](int64_t size) { return size; }}};
  const std::vector<std::pair<std::string, Sizes>> sequences{{"growing", growing(300)},
                                                             {"60 by turns", by_turns(60, 600)},
                                                             {"300 by turns", by_turns(300, 900)},
                                                             {"drawn", drawn(random, 1000, 500, 0)},
                                                             {"Zipf", drawn(random, 300, 600, 1.1)},
                                                             {"twice and gone", twice_and_gone(400)},
                                                             {"decoding", decoding(random, 30)},
                                                             {"one between", between(twice_and_gone(400), 5)},
                                                             {"one and many", between(Sizes(300, 40), 1)},
                                                             {"small, then large", Sizes(600, 32)}};
  const auto& [kind, structure] = structures[static_cast<size_t>(round) % structures.size()];
  const auto& [name, sizes] = sequences[static_cast<size_t>(round) / structures.size() % sequences.size()];
  world.structure = structure;
  made.first = std::vector<int64_t>{1, 8, 2}[random() % 3];
  made.sizes = sizes;
  made.what = name + ", " + kind + ", round " + std::to_string(round);
  return made;
}

}  // namespace

void check_the_rule() {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Drawn made = drawn_world(random, round, true);
    Player player(made.world, made.first, round % 3 == 0);
    player.call(made.sizes);
    player.check(made.what);
  }
}

// Where nets win by half, many sizes must win, too.
void check_that_it_wins() {
  std::mt19937 random(2);
  const std::vector<std::pair<std::string, Sizes>> all{{"60 sizes by turns", by_turns(60, 2000)},
                                                       {"Zipf", drawn(random, 300, 2000, 1.1)}};
  for (const auto& [what, sizes] : all) {
    for (const bool looks_first : {false, true}) {
      World world;
      world.host_ns = [](int64_t) { return ms; };
      world.net_ns = [](int64_t) { return ms / 2; };
      world.lower_ns = 2 * ms;
      Player player(world, 8, looks_first);
      player.call(sizes);
      player.check(what);
      const std::string text = what + ": 0.8 of the host's time, not " + std::to_string(player.ratio());
      expect(player.ratio() <= 0.8, text.c_str());
    }
  }
}

// Shapes that change the graph itself: they are lowered to find that out, and again for their net.
void check_other_structures() {
  const auto of_one = [](int64_t size) { return size == 1 ? 0 : 1; };
  const auto of_small = [](int64_t size) { return size < 4 ? 0 : 1; };
  const auto own = [](int64_t size) { return size; };
  std::mt19937 random(3);
  struct Case {
    std::string what;
    std::function<int64_t(int64_t)> structure;
    int64_t first;
    Sizes sizes;
    int64_t stays;
  };
  const std::vector<Case> cases{{"one, then many", of_one, 1, {}, 5},
                                {"many, then one", of_one, 5, {}, 1},
                                {"one by turns with many", of_one, 1, between(Sizes(3000, 5), 1), 5},
                                {"one between sizes that do not stay", of_one, 6, between(twice_and_gone(3000), 1), 1},
                                {"growing from one", of_one, 1, growing(300), 40},
                                {"decoding", of_one, 7, decoding(random, 100), 1},
                                {"small, then large images", of_small, 2, {}, 32},
                                {"each its own", own, 1, by_turns(50, 2000), 20}};
  for (const Case& one : cases) {
    World world;
    world.host_ns = [](int64_t) { return ms / 20; };
    world.net_ns = [](int64_t) { return ms / 50; };
    world.lower_ns = ms / 3;
    world.plan_ns = 4 * ms;
    world.structure = one.structure;
    Player player(world, one.first);
    player.call(one.sizes);
    int calls = 0;
    while (player.call(one.stays) == "host" && calls < 20'000) ++calls;
    player.call(Sizes(16, one.stays));
    player.check(one.what);
    expect(player.call(one.stays) == "net", (one.what + ": has its net").c_str());
    expect(calls < 20'000, (one.what + ": within a second").c_str());
    const auto& counts = world.prepared;
    const bool few = std::all_of(counts.begin(), counts.end(), [](const auto& size) { return size.second <= 2; });
    expect(few, (one.what + ": no size is lowered in vain twice").c_str());
  }
}

// What is saved for a plan is not spent on sizes that need less each and take turns without end.
void check_saving() {
  World world;
  world.host_ns = [](int64_t) { return ms; };
  world.net_ns = [](int64_t) { return ms / 2; };
  world.lower_ns = ms / 4;
  world.plan_ns = 30 * ms;
  world.structure = [](int64_t size) { return size == 1 ? 1 : 0; };
  Player player(world, 8);
  player.call(twice_and_gone(600));
  int calls = 0;
  for (const int64_t size : between(twice_and_gone(2000), 1)) {
    if (size == 1 && world.planned == 0) ++calls;
    player.call(size);
  }
  const std::string text = "a plan that pays is chosen, not after " + std::to_string(calls) + " calls";
  expect(world.planned == 1 && calls <= 1000, text.c_str());
  player.check("saving");
  World other = world;
  other.plan_ns = 100 * ms;
  other.prepared = {};
  Player another(other, 8);
  another.call(Sizes(500, 1));
  another.call(by_turns(50, 1500));
  expect(other.prepared.size() > 40, "what nobody asks for any more is not saved for");
  another.check("saved for nothing");
}

// Whatever came before, a size that stays has its net within a second of the host's time.
void check_sizes_that_stay() {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    Drawn made = drawn_world(random, round, false);
    World& world = made.world;
    const auto net_ns = world.net_ns;
    const int64_t stays = round % 2 == 0 ? 1 : 33;
    world.net_ns = [&](int64_t size) { return size == stays ? world.host_ns(size) / 2 : net_ns(size); };
    Player player(world, made.first);
    player.call(made.sizes);
    int64_t host = 0;
    while (player.call(stays) == "host" && host < 2000 * ms) host += world.host_ns(stays);
    expect(host <= 1000 * ms, (made.what + ": a net after " + std::to_string(host / ms) + " ms").c_str());
    player.call(Sizes(16, stays));
    expect(player.call(stays) == "net", (made.what + ": a net that wins is kept").c_str());
    player.check(made.what);
  }
}

}  // namespace softneuro::test
