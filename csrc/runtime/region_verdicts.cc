// A region's verdicts: trials by calls that are wanted anyway, and what is remembered of them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"
#include "runtime/making.h"
#include "runtime/telling.h"
#include "tune/records/cost_keys.h"

namespace softneuro {
namespace {

// Calls of either side that a verdict needs, where they are not close.
constexpr size_t trial_calls = 3;
constexpr double least_share = 0.05;  // share of the host's time that a shape is taken to save, at least

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Whether not even the best of a few runs is near the host's.
bool loses_clearly(const std::vector<double>& net_s, const std::vector<double>& host_s) {
  if (net_s.size() < 2 || host_s.empty()) return false;
  return *std::min_element(net_s.begin(), net_s.end()) > 2 * *std::min_element(host_s.begin(), host_s.end());
}

}  // namespace

void Region::note_gain(const Verdict& verdict) {
  if (!verdict.known || !(verdict.error <= options().max_error)) return;
  const double gain = std::clamp(1 - verdict.seconds / verdict.host_seconds, least_share, 1.0);
  gain_ = 0.8 * gain_ + 0.2 * gain;
}

// Tries a plan that was taken over: one run of each side tells its error, and the calls to come tell which is faster.
void Region::start_trial(Ready ready, Making& making) {
  ShapeState& state = making.state;
  making.host_ns = std::max<int64_t>(run_timed_host(making.call), 1);
  making.has_run = true;
  making.call.run_net(ready);
  state.verdict = {};
  state.verdict.error = making.call.error(options().max_error);
  if (!(state.verdict.error <= options().max_error)) {
    state.verdict.host_seconds = seconds_of(making.host_ns);
    state.verdict = judged(std::move(state.verdict), options().max_error);
    state.host = state.verdict.reason;
    return;
  }
  ready.on_trial = true;
  look_at_inputs(making, ready);
  keep_net(std::move(ready), state, generation_);
  const std::unique_lock lock(mutex_);
  shape_of(making.signature).host_s.push_back(seconds_of(making.host_ns));
}

// One run of each side tells the error of a net that wins in time, on weights that nobody has tried it with.
void Region::check_error(const Ready& ready, const std::string& choices, Making& making, Verdict& verdict) {
  const int64_t start = settings_.now();
  making.host_ns += std::max<int64_t>(run_timed_host(making.call), 1);
  making.call.run_net(ready);
  const auto known = making.call.made_up() ? foretold_error(*making.state.plan) : std::nullopt;
  verdict.error = known ? *known : making.call.error(options().max_error);
  verdict.lacks_error = false;
  verdict = judged(std::move(verdict), options().max_error);
  remember(making.signature, choices, making.state.weights, verdict, making.call.threads());
  char text[128];
  std::snprintf(text, sizeof(text), "its error on these weights is %.1e: one run of each side, %.1f ms", verdict.error,
                1e-6 * static_cast<double>(settings_.now() - start));
  log_info("region '" + settings_.name + "': " + text);
}

void Region::note_trial(const Signature& signature, Side side, int64_t ns, const Decision& decision, int threads) {
  std::optional<Verdict> found;
  std::string source;
  ShapeState state;
  {
    const std::unique_lock lock(mutex_);
    if (generation_ != decision.generation) return;
    Shape& shape = shape_of(signature);
    if (!shape.host.empty()) return;
    std::vector<double>& own = side == Side::net ? shape.net_s : shape.host_s;
    if (own.size() < most_trial_calls) own.push_back(seconds_of(ns));
    if (side == Side::net && !shape.host_s.empty()) {
      const double host = *std::min_element(shape.host_s.begin(), shape.host_s.end());
      credit_.net_ran(ns, ns_of(host));
    }
    const bool enough = shape.host_s.size() >= trial_calls && shape.net_s.size() >= trial_calls;
    if (!enough && !loses_clearly(shape.net_s, shape.host_s)) return;
    Verdict now;
    now.seconds = middle(shape.net_s), now.host_seconds = middle(shape.host_s), now.error = shape.verdict.error;
    const bool more = shape.net_s.size() < most_trial_calls || shape.host_s.size() < most_trial_calls;
    if (enough && is_close(now.seconds, now.host_seconds) && more) return;
    shape.host_s = shape.net_s = {};
    source = source_;
    found = std::move(now);
    state = state_of(shape);
  }
  const Verdict before = recall(signature, source, {}, threads);
  state.verdict = merged(before, std::move(*found), options().max_error);
  remember(signature, source, state.weights, state.verdict, threads);
  {
    const std::unique_lock lock(mutex_);
    note_gain(state.verdict);
  }
  if (!state.verdict.wins) {
    state.host = state.verdict.reason;
    keep_host(signature, state, state.verdict.host_seconds, decision.generation);
  } else {
    Ready settled = *decision.net;
    settled.on_trial = false;
    settled.earns_ns = Credit::earned(ns_of(state.verdict.seconds), ns_of(state.verdict.host_seconds));
    keep_net(std::move(settled), state, decision.generation);
  }
  if (settings_.prepared) settings_.prepared(signature, state, nullptr);
}

// The key names everything that times and errors depend on besides the plan.
std::string Region::verdict_key(const Signature& signature) const {
  std::string text = "region " + settings_.content + " ";
  for (const int64_t value : signature) text += std::to_string(value) + ",";
  return text + " " + settings_.host;
}

Verdict Region::recall(const Signature& signature, const std::string& plan, const std::string& weights,
                       int threads) const {
  if (options().tune == TuneMode::off) return {};
  const Ledger ledger(shared_cost_db(), threads);
  const std::string key = verdict_key(signature);
  std::optional<double> error;
  if (!weights.empty()) error = ledger.find_host_error(key + " weights " + weights, plan);
  return verdict_of(ledger.find_verdict(key, plan), error, options().max_error);
}

void Region::remember(const Signature& signature, const std::string& plan, const std::string& weights,
                      const Verdict& verdict, int threads) const {
  if (!std::isfinite(verdict.error)) return;  // these inputs may be to blame, which others are not like
  Ledger ledger(shared_cost_db(), threads);
  const std::string key = verdict_key(signature);
  ledger.add_host_error(key + " weights " + weights, plan, verdict.error);
  // A net that errs too much was timed in few runs.
  if (!(verdict.error <= options().max_error)) return;
  ledger.add_verdict(key, plan, {verdict.seconds, verdict.host_seconds, verdict.trials});
}

}  // namespace softneuro
