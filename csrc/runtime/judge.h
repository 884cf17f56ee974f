// Never worse: whether a net beats the host, in time and in error, on real inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/call.h"
#include "runtime/clock.h"
#include "tune/records/cost_db.h"

namespace softneuro {

struct Verdict {
  bool known = false, wins = true;
  double seconds = 0, host_seconds = 0, error = 0;
  int trials = 1;            // comparisons that it sums up
  bool lacks_error = false;  // it wins in time, and nobody has measured its error on the weights at hand: not known
  std::string reason;        // in words
  double error_s = 0;        // that finding the error took, if it was found just now
};

// A close verdict is taken so often, each in its own process, and then kept.
constexpr int most_trials = 2;
// Whether two times differ by no more than noise may.
bool is_close(double seconds, double host_seconds);
// Sets `wins` and the reason.
Verdict judged(Verdict verdict, double max_error);
// The verdict that records give: times hold for all weights, an error for its own. Not known where they do not decide.
Verdict verdict_of(const std::optional<VerdictRecord>& times, const std::optional<double>& error, double max_error);
// Whether its times need no other comparison.
bool is_settled(const Verdict& verdict);
// Whether a verdict that is known needs no other comparison.
bool is_final(const Verdict& verdict, double max_error);
// Both comparisons in one: the geometric mean of their ratios, on the scale of the new times.
Verdict merged(const Verdict& before, Verdict now, double max_error);

struct JudgeSettings {
  double max_error = 1e-4;
  int64_t pause_ns = 0;  // before each side's turn, for a host whose idle threads are busy for a while
  NowNs now = steady_now_ns;
  std::optional<double> error = {};  // of the net, if it is known; none: the call tells
};
// Runs both by turns and in turn first. It ends early if nearly all rounds have the same winner, and goes on for longer
// if they do not: what counts is the median of the ratios of neighbouring runs, as whatever else the machine does slows
// both.
Verdict compare(RegionCall& call, const Ready& ready, const JudgeSettings& settings);

}  // namespace softneuro
