// What a scan of weights finds, within how many calls, and what it takes.
#include "runtime/weight_scan.h"

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

WeightScan::Piece row_major(const std::vector<float>& values, std::vector<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return {values.data(), sizeof(float), std::move(sizes), std::move(strides)};
}

// Calls until a change shows, at most `most`; 0 for none.
int64_t calls_until_found(WeightScan& scan, Clock& clock, int64_t run_ns, const PaidRuns& runs, int64_t most) {
  for (int64_t call = 1; call <= most; ++call) {
    if (!scan.look()) return call;
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
      const auto scan = std::make_shared<WeightScan>(clock.now());
      scan->learn({row_major(values, {100, 1000})});
      const PaidRuns runs(scan);
      expect(calls_until_found(*scan, clock, run_ns, runs, 2'000) == 0, "nothing has changed");
      const int64_t bound = scan->calls_to_see_all(run_ns + clock.step);
      values[changed] += 1;
      const int64_t found = calls_until_found(*scan, clock, run_ns, runs, 4 * bound + 4);
      expect(found > 0 && found <= 2 * bound + 2, "a change is found in about as many calls as are told");
      expect(!runs.up_to_date(), "nets made before are not of these bytes");
      scan->learn({row_major(values, {100, 1000})});
      const PaidRuns later(scan);
      expect(later.up_to_date() && calls_until_found(*scan, clock, run_ns, later, 3 * bound) == 0,
             "those made since are");
    }
  }
}

void check_that_looks_take_a_hundredth() {
  Clock clock;
  clock.step = 2'000;
  const std::vector<float> values(200'000, 1.0F);
  for (const int64_t run_ns : {50'000, 300'000, 7'000'000}) {
    const auto scan = std::make_shared<WeightScan>(clock.now());
    scan->learn({row_major(values, {200'000})});
    const PaidRuns runs(scan);
    int64_t looked = 0, ran = 0;
    for (int i = 0; i < 5'000; ++i) {
      const int64_t before = clock.ns;
      expect(scan->look(), "nothing has changed");
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
    return WeightScan::Piece{memory.data(), sizeof(float), std::move(sizes), std::move(strides)};
  };
  struct Case {
    WeightScan::Piece piece;
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
        WeightScan scan(clock.now());
        scan.learn({one.piece});
        const auto runs = PaidRuns(std::shared_ptr<WeightScan>(std::shared_ptr<void>(), &scan));
        memory[element] += 1;
        expect((calls_until_found(scan, clock, 1'000'000, runs, 100) > 0) == seen,
               "a tensor's own elements are compared, and no others");
      }
    }
  }
}

void check_what_is_known_already() {
  Clock clock;
  std::vector<float> values(10'000, 1.0F);
  WeightScan scan(clock.now());
  scan.learn({row_major(values, {10'000})});
  const uint32_t epoch = scan.epoch();
  scan.learn({row_major(values, {10'000})});
  expect(scan.epoch() == epoch, "the same bytes are not learnt again");
  values[0] = 2;
  scan.learn({row_major(values, {10'000})});
  expect(scan.epoch() != epoch, "others are, if a place that is looked at shows it");
  scan.forget();
  expect(!scan.learnt() && scan.look() && scan.calls_to_see_all(1'000'000) == 0, "nothing is left to compare");
  scan.learn({});
  expect(!scan.learnt() && scan.look(), "nor is there if all is compared anyway");
}

void check_threads() {
  std::vector<float> values(200'000, 1.0F);
  const auto scan = std::make_shared<WeightScan>();
  scan->learn({row_major(values, {200'000})});
  const PaidRuns runs(scan);
  std::atomic<int> found{0};
  values[150'000] = 2;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      // A build with sanitizers needs millions of calls until they have paid for all slices.
      for (int call = 0; call < 20'000'000 && runs.up_to_date(); ++call) {
        found += !scan->look();
        runs.pay([] {
          for (volatile int j = 0; j < 200;) j = j + 1;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect(found == 1, "one thread finds it, once");
}

}  // namespace
}  // namespace softneuro

SN_TEST(weight_scan_test) {
  softneuro::set_log_sink([](softneuro::LogLevel, const std::string&) {});
  softneuro::check_that_every_byte_is_seen_in_time();
  softneuro::check_that_looks_take_a_hundredth();
  softneuro::check_forms_of_memory();
  softneuro::check_what_is_known_already();
  softneuro::check_threads();
}
