// How a net and the host are compared, by a clock that is not the machine's.
#include "runtime/judge.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/expect.h"

namespace softneuro {
namespace {

using test::expect;

// Sides that take these times in turn.
struct Sides : RegionCall {
  std::vector<double> net, host;
  double found_error = 0;
  int64_t now = 0;
  size_t nets = 0, hosts = 0;

  Sides(std::vector<double> n, std::vector<double> h) : net(std::move(n)), host(std::move(h)) {}
  LoweredCall lower() override { return {}; }
  void run_host() override { now += static_cast<int64_t>(1e9 * host[hosts++ % host.size()]); }
  void run_net(const Ready&) override { now += static_cast<int64_t>(1e9 * net[nets++ % net.size()]); }
  double error(double) override { return found_error; }
  int threads() const override { return 1; }
  std::string inputs() const override { return {}; }

  Verdict judge() {
    return compare(*this, {}, {.max_error = 1e-4, .pause_ns = 0, .now = [this] { return now; }});
  }
};

double seconds(const Sides& sides) { return 1e-9 * static_cast<double>(sides.now); }
bool near(double a, double b) { return std::fabs(a - b) < 1e-6 * std::fabs(b); }

void check_comparing() {
  Sides clear({0.1}, {0.2});
  const Verdict won = clear.judge();
  expect(won.wins && near(won.seconds, 0.1) && near(won.host_seconds, 0.2), "the faster side wins");
  expect(seconds(clear) <= 0.3 * 11, "a clear case ends early");

  Sides preempted({0.01, 0.01, 0.5}, {0.012});
  expect(preempted.judge().wins, "a preempted run of the net decides nothing");
  Sides other({0.01}, {0.008, 0.008, 0.7, 0.008});
  expect(!other.judge().wins, "nor one of the host");

  std::vector<double> net, host;
  for (int i = 0; i < 60; ++i) net.push_back(i < 7 ? 0.01 : 0.1), host.push_back(i < 7 ? 0.011 : 0.11);
  Sides slowed(net, host);
  const Verdict steady = slowed.judge();
  expect(near(steady.seconds / steady.host_seconds, 10.0 / 11), "a machine that slows down decides nothing");

  Sides close({0.1, 0.11}, {0.11, 0.1});
  close.judge();
  expect(seconds(close) > 4 && seconds(close) < 5, "a close case is measured for longer");

  Sides far({0.4}, {1.3});
  expect(far.judge().wins && seconds(far) < 1.7 * 2.5,
         "of runs that take long, two pairs are enough if they are far apart");
  Sides slow_once({0.4}, {1.3, 0.5});
  slow_once.judge();
  expect(seconds(slow_once) > 1.3 * 5, "and no others");

  Sides inexact({1.0}, {2.0});
  inexact.found_error = 0.5;
  const Verdict lost = inexact.judge();
  expect(!lost.wins && lost.reason.find("max_error") != std::string::npos, "too large an error loses");
  expect(seconds(inexact) <= 6, "and is hardly timed");
  inexact.found_error = NAN;
  expect(!inexact.judge().wins, "and so does none at all");
}

void check_remembering() {
  const auto taken = [](double s, double host_s, int trials) {
    Verdict verdict;
    verdict.known = true, verdict.seconds = s, verdict.host_seconds = host_s, verdict.trials = trials;
    return verdict;
  };
  const auto verdict = [&](double s, int trials) { return judged(taken(s, 0.1, trials), 1e-4); };
  expect(is_final(verdict(0.05, 1), 1e-4), "a clear verdict stays");
  expect(!is_final(verdict(0.098, 1), 1e-4), "a close one is taken once more");
  expect(is_final(verdict(0.098, 2), 1e-4), "and then stays");
  expect(!is_final({}, 1e-4), "none is none");
  const Verdict both = merged(verdict(0.098, 1), taken(0.24, 0.2, 1), 1e-4);
  expect(!both.wins && both.trials == 2, "two make one");
  const VerdictRecord times{0.05, 0.1, 2};
  expect(verdict_of(times, 1e-5, 1e-4).known && verdict_of(times, 1e-5, 1e-4).wins, "times and an error are a verdict");
  expect(!verdict_of(times, {}, 1e-4).known && verdict_of(times, {}, 1e-4).lacks_error, "other weights need an error");
  expect(verdict_of(times, 1e-3, 1e-4).known && !verdict_of(times, 1e-3, 1e-4).wins, "too large an error loses");
  expect(verdict_of({}, 1e-3, 1e-4).known && !verdict_of({}, 1e-5, 1e-4).known, "without times, too");
  expect(verdict_of(VerdictRecord{0.2, 0.1, 2}, {}, 1e-4).known, "what loses in time needs no error");
  expect(near(both.seconds / both.host_seconds, std::sqrt(0.98 * 1.2)), "by the mean of their ratios");
}

}  // namespace
}  // namespace softneuro

SN_TEST(judge_test) {
  softneuro::check_comparing();
  softneuro::check_remembering();
}
