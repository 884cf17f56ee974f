// What a look at weights finds, within how many calls, and what it takes.
#include "runtime/weight_set.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/log.h"
#include "tests/expect.h"

namespace softneuro {
namespace {

using test::expect;

// A clock that each look at it moves on; runs take what a test says.
struct Clock {
  int64_t ns = 0, step = 0;
  NowNs now() {
    return [this] { return ns += step; };
  }
};

WatchedWeights::Piece row_major(const std::vector<float>& values, std::vector<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return {values.data(), sizeof(float), std::move(sizes), std::move(strides)};
}

// Calls until a change shows, at most `most`; 0 for none.
int64_t calls_until_found(WatchedWeights& weights, Clock& clock, int64_t run_ns, const PaidRuns& runs, int64_t most) {
  for (int64_t call = 1; call <= most; ++call) {
    if (weights.look() != runs.made_of()) return call;
    runs.pay([&] { clock.ns += run_ns; });
  }
  return 0;
}

void check_that_every_byte_is_seen_in_time() {
  Clock clock;
  clock.step = 1000;
  std::vector<float> values(100'000, 1.0F);
  for (const int64_t run_ns : {20'000, 1'000'000, 50'000'000}) {
    for (const size_t changed : {size_t{0}, size_t{4097}, size_t{50'001}, values.size() - 1}) {
      const auto weights = std::make_shared<WatchedWeights>(clock.now());
      const PaidRuns runs(weights, weights->learn({row_major(values, {100, 1000})}));
      expect(calls_until_found(*weights, clock, run_ns, runs, 2'000) == 0, "nothing has changed");
      const int64_t bound = weights->calls_to_see_all(run_ns + clock.step);
      values[changed] += 1;
      const int64_t found = calls_until_found(*weights, clock, run_ns, runs, 4 * bound + 4);
      expect(found > 0 && found <= 2 * bound + 2, "a change is found in about as many calls as are told");
      expect(weights->look() != runs.made_of(), "nets made before are not of these bytes");
      const PaidRuns later(weights, weights->learn({row_major(values, {100, 1000})}));
      expect(calls_until_found(*weights, clock, run_ns, later, 3 * bound) == 0, "those made since are");
    }
  }
}

// A hundredth of theirs is no whole nanosecond.
void check_that_the_shortest_runs_pay() {
  Clock clock;
  clock.step = 10;
  std::vector<float> values(100'000, 1.0F);
  const auto weights = std::make_shared<WatchedWeights>(clock.now());
  const PaidRuns runs(weights, weights->learn({row_major(values, {100'000})}));
  values[50'001] += 1;
  expect(calls_until_found(*weights, clock, 0, runs, 10'000) > 0, "a change is found all the same");
}

void check_that_looks_take_a_hundredth() {
  Clock clock;
  clock.step = 2'000;
  const std::vector<float> values(200'000, 1.0F);
  for (const int64_t run_ns : {50'000, 300'000, 7'000'000}) {
    const auto weights = std::make_shared<WatchedWeights>(clock.now());
    const PaidRuns runs(weights, weights->learn({row_major(values, {200'000})}));
    int64_t looked = 0, ran = 0;
    for (int i = 0; i < 5'000; ++i) {
      const int64_t before = clock.ns;
      expect(weights->look() == runs.made_of(), "nothing has changed");
      if (clock.ns > before) looked += clock.ns - before - clock.step;  // the first look at the clock is free
      runs.pay([&] { clock.ns += run_ns; });
      ran += run_ns;
    }
    expect(looked > 0 && looked <= ran / 90, "looks take no more than their share");
  }
}

void check_forms_of_memory() {
  Clock clock;
  clock.step = 10;
  std::vector<float> memory(6'000, 0.0F);
  const auto of = [&](std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    return WatchedWeights::Piece{memory.data(), sizeof(float), std::move(sizes), std::move(strides)};
  };
  struct Case {
    WatchedWeights::Piece piece;
    std::vector<size_t> seen, unseen;  // elements of the memory
  };
  const std::vector<Case> cases{
      {of({10, 20}, {100, 1}), {0, 19, 919}, {20, 920}},           // part of each row
      {of({10, 20}, {100, 2}), {0, 38, 938}, {1, 40}},             // every other element
      {of({20, 10}, {1, 100}), {0, 19, 919}, {20, 920}},           // transposed
      {of({3, 10, 20}, {2000, 100, 1}), {0, 2919, 4919}, {2020}},  // of images
      {of({4, 50}, {0, 1}), {0, 49}, {50}},                        // the same row again
      {of({1, 5000}, {7, 1}), {0, 4999}, {5000}},
      {of({}, {}), {0}, {1}},
  };
  for (const Case& one : cases) {
    for (const bool seen : {true, false}) {
      for (const size_t element : seen ? one.seen : one.unseen) {
        const auto weights = std::make_shared<WatchedWeights>(clock.now());
        const PaidRuns runs(weights, weights->learn({one.piece}));
        memory[element] += 1;
        expect((calls_until_found(*weights, clock, 1'000'000, runs, 100) > 0) == seen,
               "a tensor's own elements are compared, and no others");
      }
    }
  }
}

void check_epochs() {
  std::vector<float> values(10'000, 1.0F), few(8, 1.0F);
  const auto pieces = [&] { return std::vector{row_major(values, {10'000}), row_major(few, {8})}; };
  WatchedWeights weights, others;
  expect(weights.identity() != others.identity() && weights.identity() != constant_weights.identity,
         "sets are told apart");
  const WeightSet before = weights.look();
  values[0] = few[7] = 2;
  expect(weights.look() == before, "nobody has made a net yet");
  const WeightSet made_of = weights.learn(pieces());
  expect(made_of == weights.look() && made_of == weights.learn(pieces()), "the same bytes are not learnt again");
  few[7] = 3;
  const WeightSet small = weights.look();
  expect(small.epoch > made_of.epoch, "all of a small weight is compared at each look");
  expect(weights.look() == small && weights.calls_to_see_all(1'000'000) == 0, "nothing is left to compare");
  expect(weights.learn(pieces()) == small && weights.look() == small, "what is made from here on is of this epoch");
  values[0] = 4;
  const WeightSet learnt = weights.learn(pieces());
  expect(learnt.epoch > small.epoch, "what is learnt anew where a place has changed is of another");
  weights.changed();
  expect(weights.look().epoch > learnt.epoch, "the host's word counts");
  std::vector<WatchedWeights::Piece> whole = pieces();
  whole[0].whole = true;
  const WeightSet all = weights.learn(whole);
  expect(weights.bytes() == 0, "what is compared whole needs no turn");
  expect(weights.learn(pieces()) == all, "and stays so, whatever others want");
  values[5'001] = 5;
  expect(weights.look().epoch > all.epoch, "all of it is compared at each look");
  const WeightSet some = weights.learn(pieces());
  expect(weights.learn(whole) == some, "to want it later changes nothing");
  values[5'001] = 6;
  expect(weights.look().epoch > some.epoch, "but what is compared");
}

void check_table() {
  WeightTable table;
  const float values[2] = {};
  const WeightTable::Addresses at{values, values + 1};
  const auto weights = std::make_shared<WatchedWeights>();
  table.add(at, weights);
  expect(table.look(at) == weights->look() && !table.look({values}), "a set is found by all of its addresses");
  table.drop(weights->identity());
  expect(!table.look(at), "and not after it has been dropped");
}

// A change that comes while other threads look is seen by each of them, and told once.
void check_threads() {
  std::vector<float> values(200'000, 1.0F);
  const auto weights = std::make_shared<WatchedWeights>();
  const PaidRuns runs(weights, weights->learn({row_major(values, {200'000})}));
  const uint64_t found = WatchedWeights::found();
  values[150'000] = 2;
  std::atomic<int> seen{0};
  const auto look_until = [&](uint64_t epoch) {
    // A build with sanitizers needs millions of calls until they have paid for all slices.
    for (int call = 0; call < 20'000'000; ++call) {
      if (weights->look().epoch >= epoch) return void(++seen);
      runs.pay([] {
        for (volatile int j = 0; j < 200;) j = j + 1;
      });
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(look_until, runs.made_of().epoch + 1);
  for (std::thread& thread : threads) thread.join();
  expect(seen == 4 && WatchedWeights::found() == found + 1, "all see it, and one tells");
  threads.clear();
  const uint64_t after = weights->learn({row_major(values, {200'000})}).epoch + 8;
  for (int i = 0; i < 4; ++i) threads.emplace_back(look_until, after);
  for (int i = 0; i < 8; ++i) {
    weights->changed();
    weights->learn({row_major(values, {200'000})});
  }
  for (std::thread& thread : threads) thread.join();
  expect(seen == 8 && weights->look().epoch == after, "each of the host's words counts once");
}

}  // namespace
}  // namespace softneuro

SN_TEST(weight_set_test) {
  softneuro::set_log_sink([](softneuro::LogLevel, const std::string&) {});
  softneuro::check_that_every_byte_is_seen_in_time();
  softneuro::check_that_the_shortest_runs_pay();
  softneuro::check_that_looks_take_a_hundredth();
  softneuro::check_forms_of_memory();
  softneuro::check_epochs();
  softneuro::check_table();
  softneuro::check_threads();
}
