#include "runtime/judge.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

namespace softneuro {
namespace {

constexpr size_t least_rounds = 5, most_rounds = 40;
constexpr double far_s = 0.5;    // spent at most where one side is far ahead
constexpr double clear_s = 1.0;  // spent on a clear case at most, beyond the rounds that it needs at least
constexpr double close_s = 4.0;  // on a close one
constexpr double close = 0.05;   // relative difference of times below which noise may have made the verdict

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

// Whether the rounds agree on the winner, and by more than a close verdict's margin.
bool is_clear(const std::vector<double>& ratios) {
  const auto count = static_cast<double>(ratios.size());
  const auto faster = static_cast<double>(std::count_if(ratios.begin(), ratios.end(), [](double r) { return r < 1; }));
  // A sign test at about one error in a thousand.
  const bool one_sided = std::fabs(2 * faster - count) >= std::min(count, 3.3 * std::sqrt(count));
  return one_sided && !is_close(median(ratios), 1);
}

// Whether one side is so far ahead, in each round and in the runs before, that no more are needed where runs take long.
bool is_far(double before, const std::vector<double>& ratios) {
  const double factor = ratios.size() == 1 ? 2 : 1.5;
  const auto net = [&](double ratio) { return ratio * factor < 1; };
  const auto host = [&](double ratio) { return ratio > factor; };
  return (net(before) && std::all_of(ratios.begin(), ratios.end(), net)) ||
         (host(before) && std::all_of(ratios.begin(), ratios.end(), host));
}

}  // namespace

bool is_close(double seconds, double host_seconds) {
  return std::fabs(seconds - host_seconds) <= close * std::max(seconds, host_seconds);
}

Verdict judged(Verdict verdict, double max_error) {
  char text[128];
  if (!(verdict.error <= max_error)) {
    std::snprintf(text, sizeof(text), "its error of %.1e is above max_error=%g", verdict.error, max_error);
    verdict.wins = false;
  } else {
    std::snprintf(text, sizeof(text), "%.3f ms against the host's %.3f ms", 1e3 * verdict.seconds,
                  1e3 * verdict.host_seconds);
    verdict.wins = verdict.seconds < verdict.host_seconds;
  }
  verdict.known = true;
  verdict.reason = text;
  return verdict;
}

Verdict verdict_of(const std::optional<VerdictRecord>& times, const std::optional<double>& error, double max_error) {
  Verdict verdict;
  if (times)
    verdict.seconds = times->seconds, verdict.host_seconds = times->host_seconds, verdict.trials = times->trials;
  verdict.error = error.value_or(0);
  const bool too_inexact = error && !(*error <= max_error);
  if (!times && !too_inexact) return verdict;
  verdict = judged(std::move(verdict), max_error);
  verdict.lacks_error = verdict.wins && !error;
  verdict.known = !verdict.lacks_error;
  return verdict;
}

bool is_settled(const Verdict& verdict) {
  return verdict.trials >= most_trials || !is_close(verdict.seconds, verdict.host_seconds);
}

bool is_final(const Verdict& verdict, double max_error) {
  return verdict.known && (is_settled(verdict) || !(verdict.error <= max_error));
}

Verdict merged(const Verdict& before, Verdict now, double max_error) {
  if (before.host_seconds == 0) return judged(std::move(now), max_error);
  const double ratio = std::sqrt(now.seconds / now.host_seconds * before.seconds / before.host_seconds);
  now.seconds = ratio * now.host_seconds;
  now.trials = before.trials + 1;
  return judged(std::move(now), max_error);
}

Verdict compare(RegionCall& call, const Ready& ready, const JudgeSettings& settings) {
  const auto net = [&] { call.run_net(ready); };
  const auto host = [&] { call.run_host(); };
  const auto took = [&](const auto& run) {
    const int64_t start = settings.now();
    run();
    return std::max(1e-9 * static_cast<double>(settings.now() - start), 1e-9);
  };
  const double before_net_s = took(net), before = before_net_s / took(host);
  Verdict verdict;
  verdict.error_s = took([&] { verdict.error = settings.error ? *settings.error : call.error(settings.max_error); });
  const auto timed = [&](const auto& run) {
    if (settings.pause_ns > 0) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(settings.pause_ns));
      run();  // takes the caches back
    }
    return took(run);
  };
  std::vector<double> ratios, host_times;
  const int64_t start = settings.now();
  const size_t rounds = verdict.error <= settings.max_error ? most_rounds : 1;
  for (size_t round = 1; round <= rounds; ++round) {
    // Whoever comes second finds the other's data in the caches.
    double net_s = 0, host_s = 0;
    if (round % 2 == 0) {
      net_s = timed(net), host_s = timed(host);
    } else {
      host_s = timed(host), net_s = timed(net);
    }
    ratios.push_back(net_s / host_s);
    host_times.push_back(host_s);
    const double spent = 1e-9 * static_cast<double>(settings.now() - start);
    const bool clear = is_clear(ratios);
    if (spent > far_s && is_far(before, ratios)) break;
    if (round >= least_rounds && spent > (clear ? clear_s : close_s)) break;
    // What takes seconds for one run is worth three, and what agrees so often needs no more.
    if ((round >= 3 && spent > 2 * close_s) || (round >= 2 * least_rounds && clear)) break;
  }
  verdict.host_seconds = median(host_times);
  verdict.seconds = median(ratios) * verdict.host_seconds;
  return judged(std::move(verdict), settings.max_error);
}

}  // namespace softneuro
