// A region's nets: lowered, planned, prepared and judged.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"
#include "layers/host/host.h"
#include "runtime/making.h"
#include "runtime/telling.h"
#include "tune/plan/plan_graph.h"
#include "tune/search/pinned.h"

namespace softneuro {
namespace {

// The most that a plan may err after one that was too inexact on real inputs, which may magnify errors further than
// those that it was tuned on; nothing if that cannot help.
std::optional<double> tighter(const Verdict& found, double allowed, const Options& options) {
  const bool helps = options.max_error < found.error && std::isfinite(found.error) && options.plan.empty();
  if (!helps || allowed < options.max_error / 100) return std::nullopt;
  return allowed * std::max(0.5 * options.max_error / found.error, 0.1);
}

// What a tuning would have taken without measuring; 0 if it does not tell.
double planning_s(const TuneResult& result) {
  double sum = 0;
  for (const StageTime& stage : result.stages) {
    if (stage.name == "enumerate" || stage.name == "recall" || stage.name == "solve") sum += stage.seconds;
  }
  return sum;
}

}  // namespace

SharedPlan Region::choose_plan(const Graph& graph, double allowed, Making& making) {
  RegionCall& call = making.call;
  const ShapeState& known = making.state;
  const Plan& restored = making.restored;
  Options options = this->options();
  options.max_error = allowed;
  const int threads = call.threads();
  if (restored.key == plan_key(graph, threads, restored.key.calibration) && is_for_weights(restored, graph)) {
    const TuneSettings settings = tune_settings(graph, options, threads);
    TuneResult saved = from_plan(graph, restored);
    const auto reason = not_as_asked(graph, saved.assignment, settings);
    if (!reason) {
      making.as_saved = !restored.grids.empty();
      return std::make_shared<const KnownPlan>(
          KnownPlan{graph.structural_hash(), patterns_of(graph), settings, std::move(saved)});
    }
    log_warning("region '" + settings_.name + "': of the saved plan " + *reason + ": it is chosen anew");
  }
  if (!call.anew()) {
    // Its net had to make room, or its weights have changed.
    const bool same =
        known.plan != nullptr && known.plan->graph_hash == graph.structural_hash() && has_grids_for(*known.plan, graph);
    if (same && options.plan.empty() && allowed == this->options().max_error) return known.plan;
    if (SharedPlan near = near_plan(graph, options, threads)) return near;
  }
  if (making.first || call.anew() || !this->options().never_worse) {
    SharedPlan made = settings_.plan(graph, options, threads, [&](int done, int total) { call.progress(done, total); });
    char text[160];
    const TuneResult& result = made->result;
    std::snprintf(
        text, sizeof(text),
        "planned %zu layers in %.2f s: %.3f ms predicted, %.3f ms at best; %d costs measured, %d recalled, %d "
        "guessed",
        result.layers.size(), result.tuning_s, 1e3 * result.predicted_s, 1e3 * result.lower_bound_s, result.measured,
        result.recalled, result.guessed);
    log_info("region '" + settings_.name + "': " + text);
    return made;
  }
  // Shapes that change the graph, too, or zeros of its weights: of what is known of its layers, without measuring.
  if (!may_plan(graph, making)) return near_plan(graph, options, threads, true);
  if (options.tune == TuneMode::profile) options.tune = TuneMode::cached;
  const int64_t start = settings_.now();
  SharedPlan made = settings_.plan(graph, options, threads, {});
  making.planning_ns += settings_.now() - start;
  note_planning(graph, making.planning_ns);
  return made;
}

// From here on its calls are real ones: comparisons repeat them, or make inputs up.
void Region::look_at_inputs(const Making& making, Ready& ready) const {
  std::shared_ptr<OutsideCounts> counts;
  {
    const std::shared_lock lock(mutex_);
    counts = outside_;
  }
  const Grids* grids = making.state.plan->result.assignment.grids.get();
  ready.ranges = InputRanges::of(*making.graph, grids, *ready.net, std::move(counts));
}

void Region::run_made(Making& making, Ready ready) {
  if (!making.call.made_up()) look_at_inputs(making, ready);
  if (making.call.has_values()) {
    making.call.run_net(ready);
    making.side = Side::net;
    making.has_run = true;
  }
  if (making.call.made_up()) look_at_inputs(making, ready);
  keep_net(std::move(ready), making.state, generation_);
}

// Makes a net and says whether another is to be tried, for less of an error.
std::optional<double> Region::make_net(Making& making, double allowed) {
  RegionCall& call = making.call;
  ShapeState& state = making.state;
  const double max_error = options().max_error;
  const int threads = call.threads();
  const int64_t start = settings_.now();
  LoweredCall lowered = call.lower();
  const int64_t lowered_at = settings_.now();
  SharedPlan plan = choose_plan(lowered.graph, allowed, making);
  if (plan == nullptr) {
    making.has_net = false;  // an attempt before erred too much, and there is no credit for another
    note_unplanned(making, lowered.graph);
    return std::nullopt;
  }
  // What a saved plan rounds to grids was borne when it was saved, within the options of then.
  const bool judges = options().never_worse && options().tune != TuneMode::off && !making.as_saved;
  const bool compares = measures() && has_host_ && call.has_values();
  if (!compares && !making.as_saved) {  // else the host's results tell what the plan errs on these weights
    Options options = this->options();
    options.max_error = allowed;
    plan = bearable_plan(lowered.graph, std::move(plan), options, threads);
  }
  const std::string weights = judges ? lowered.graph.weights_identity() : "";
  const int64_t planned_at = settings_.now();
  const bool inexact = allowed < max_error;  // the last one was too much so
  if (inexact && choices_of(*state.plan) == choices_of(*plan)) {
    state.host = state.verdict.reason;  // no other plan is to be had
    return std::nullopt;
  }
  const bool again = plan == state.plan && state.verdict.known && state.weights == weights;
  state.plan = plan;
  state.weights = weights;
  Ready ready{.signature = making.signature,
              .weights = lowered.runs != nullptr ? lowered.runs->made_of() : making.weights,
              .net = Net::prepare(lowered.graph, plan->result.assignment, threads, PackedCache::shared(), arenas_),
              .orders = std::move(lowered.orders),
              .door = std::move(lowered.door),
              .plan = plan,
              .runs = std::move(lowered.runs),
              .flushes_denormals = this->options().flush_denormals};
  state.stats = ready.net->stats();
  making.has_net = true;
  if (making.first) {
    if (const double seconds = planning_s(plan->result); seconds > 0) note_planning(lowered.graph, ns_of(seconds));
    const int64_t packing = ns_of(state.stats->packing_s);
    int64_t cost = lowered_at - start + settings_.now() - planned_at - packing;
    if (call.open_shapes()) {  // the first time takes longer than others will
      const int64_t again_at = settings_.now();
      Net::prepare(call.lower().graph, plan->result.assignment, threads, PackedCache::shared(), arenas_);
      cost = settings_.now() - again_at;
    }
    const std::unique_lock lock(mutex_);
    shape_cost_.add(cost);
    weights_cost_.add(cost + packing);
  }
  making.graph = std::move(lowered.graph);
  std::string choices;
  {
    const std::unique_lock lock(mutex_);
    if (source_.empty() || !plan->result.carried) source_ = choices_of(*plan);
    choices = source_;
  }
  Verdict verdict = again ? state.verdict : judges ? recall(making.signature, choices, weights, threads) : Verdict();
  if (verdict.lacks_error && compares && is_settled(verdict)) check_error(ready, choices, making, verdict);
  // Where nothing is compared, the plan has proven bearable by itself.
  if (verdict.lacks_error && !compares) verdict = judged(std::move(verdict), max_error), verdict.lacks_error = false;
  const bool final = again || is_final(verdict, max_error);
  if (!final && compares) {
    if (plan->result.carried || !(making.first || call.anew())) {
      start_trial(std::move(ready), making);
      return std::nullopt;
    }
    making.apart = true;
    try {
      verdict = merged(verdict,
                       compare(call, ready,
                               {max_error, settings_.pause_ns, settings_.now,
                                call.made_up() ? foretold_error(*plan) : std::nullopt}),
                       max_error);
      remember(making.signature, choices, weights, verdict, threads);
    } catch (const NoHost& none) {
      log_info("region '" + settings_.name + "' is not compared with the host: " + none.what());
      {
        const std::unique_lock lock(mutex_);
        has_host_ = false;
      }
      return allowed;  // without it, the plan has to prove bearable by itself
    }
  }
  making.apart = making.apart || (making.first && !plan->result.carried);
  state.verdict = verdict;
  if (making.first && verdict.known) {  // of each shape to come, a run tells the error
    const std::unique_lock lock(mutex_);
    note_gain(verdict);
    const int64_t run_ns = ns_of(verdict.seconds + verdict.error_s);
    shape_cost_.add(shape_cost_.price().at_most + run_ns);
    weights_cost_.add(weights_cost_.price().at_most + run_ns);
  }
  if (verdict.known && !verdict.wins) {
    const bool may_try = measures() && call.has_values() && (making.first || !(verdict.error <= max_error));
    if (const auto next = may_try ? tighter(verdict, allowed, options()) : std::nullopt) {
      log_info("region '" + settings_.name + "': " + verdict.reason + ", choosing again");
      return next;
    }
    state.host = verdict.reason;
    return std::nullopt;
  }
  if (verdict.known) ready.earns_ns = Credit::earned(ns_of(verdict.seconds), ns_of(verdict.host_seconds));
  run_made(making, std::move(ready));
  return std::nullopt;
}

void Region::nothing_known(const Making& making) {
  const std::unique_lock lock(mutex_);
  if (!making.first) return;
  source_.clear();
  --attempts_;
}

Region::Side Region::prepare_now(const Signature& signature, const WeightSet& weights, RegionCall& call) {
  Making making{.signature = signature, .weights = weights, .call = call, .state = {}, .restored = {}, .graph = {}};
  making.start = settings_.now();
  ShapeState& state = making.state;
  std::string source;
  {
    const std::unique_lock lock(mutex_);
    const Shape& known = shape_of(signature);
    state = state_of(known);
    making.restored = known.restored;
    making.mark = known.mark;
    making.first = untried();
    ++attempts_;
    source = source_;
  }
  state.inputs = call.inputs();
  try {
    state.host = call.declined();
    if (!state.host.empty()) nothing_known(making);
    if (state.host.empty() && !source.empty() && !state.verdict.known && options().never_worse) {
      const Verdict known = recall(signature, source, {}, call.threads());
      if (is_final(known, options().max_error) && !known.wins) state.verdict = known, state.host = known.reason;
    }
    std::optional<double> allowed = options().max_error;
    while (state.host.empty() && allowed) allowed = make_net(making, *allowed);
  } catch (const PlanFileError&) {
    throw;  // the caller's to mend
  } catch (const CallersError&) {
    throw;
  } catch (const HostRaised&) {
    nothing_known(making);  // the caller's, too: of calls that do not raise
    throw;
  } catch (const NoHost&) {
    nothing_known(making);
    throw;
  } catch (const HostStepError& error) {
    if (call.has_values()) {
      try {
        call.run_host();  // raises the same, most likely
      } catch (const HostRaised&) {
        nothing_known(making);
        throw;
      }
      making.has_run = true;
    }
    making.side = Side::host;
    state.host = "a step of the host raised in the net, and not outside of it";
    log_warning("region '" + settings_.name + "': no net of it runs for inputs " + state.inputs + ": " + error.what());
  } catch (const std::exception& error) {
    if (making.first && dynamic_cast<const PinError*>(&error) != nullptr) throw;
    // Whatever went wrong, memory that ran out most likely: the host can still give the result. For a later shape it is
    // better than an error, too.
    making.has_run = false;
    state.host = error.what();
    log_warning("region '" + settings_.name + "': the host runs it for inputs " + state.inputs + ": " + state.host);
  }
  if (!making.apart) {
    const int64_t spent = settings_.now() - making.start - making.host_ns;
    credit_.spend(spent);
    note_price(making, spent);
  }
  const bool called = making.has_run || !call.has_values();
  if (state.host.empty() && !(making.has_net && called)) {  // it waits for credit
    if (call.has_values()) note_host(signature, weights, run_timed_host(call));
    return Side::host;
  }
  if (!state.host.empty()) {
    if (state.verdict.known) {
      log_info("region '" + settings_.name + "': the host runs it for inputs " + state.inputs + ": " + state.host);
    }
    keep_host(signature, state, state.verdict.host_seconds, generation_);
    if (call.has_values() && !making.has_run) call.run_instead();
    making.side = Side::host;
  }
  if (settings_.prepared) settings_.prepared(signature, state, making.graph ? &*making.graph : nullptr);
  const std::unique_lock lock(mutex_);
  uses_before_ = nets_.hits() + uses_;
  return making.side;
}

}  // namespace softneuro
