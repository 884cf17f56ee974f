#include "tune/measure/refine.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "tune/records/cost_keys.h"
#include "tune/search/solution.h"

namespace softneuro {
namespace {

constexpr size_t most_plans = 6;  // that are run step by step
constexpr int most_runs = 9, least_runs = 3;
constexpr double enough_seconds = 0.15;   // of rounds beyond these
constexpr double allowance_share = 0.15;  // of the time budget
constexpr double worth_running = 0.99;    // of the best plan's time
constexpr double fusions_better = 0.8;
constexpr double most_worse = 2;  // beyond this the routine's own time was wrong, not the net's worse

using Arm = std::pair<int, int>;  // a layer and its label, or -1 and a group

class Refiner {
 public:
  Refiner(const Graph& graph, const GraphCosts& costs, const Objective& objective, const Trials& trials)
      : graph_(graph),
        costs_(costs),
        objective_(objective),
        trials_(trials),
        ledger_(trials.db, trials.settings.threads),
        trial_(graph) {}

  // Corrects the costs of what is in the plan; false if its times are not to be had.
  bool correct(const DprsResult& plan) {
    const auto steps = step_times(to_assignment(graph_, costs_, plan));
    if (steps.empty()) return false;
    for (const auto& [layer, seconds] : steps) {
      const auto l = static_cast<size_t>(layer);
      const Candidate* candidate = chosen_candidate(costs_, plan, l);
      if (candidate == nullptr || candidate->seconds <= 0) continue;
      const DprsChoice& choice = plan.choices[l];
      objective_.seconds(l, choice) = seconds;
      seen_.insert(arm(l, choice));
      const double ratio = std::clamp(seconds / candidate->seconds, 1.0, most_worse);
      worse_[l] = std::min(worse_.try_emplace(l, ratio).first->second, ratio);
    }
    return true;
  }

  // What a run takes, as far as is known.
  double seconds(const DprsResult& plan) const { return plan_cost(objective_.seconds(), plan); }

  // Whether a plan's times are to be had without running it.
  bool is_measured(const DprsResult& plan) const { return ledger_.find_time(steps(), subject(plan)).has_value(); }

  // Whether there was no more time for this plan. A later run, which finds what was measured before it, is to end
  // there, too, unless it has more time: it would measure on, and might change its mind.
  bool was_too_much(const DprsResult& plan, double allowance) const {
    return ledger_.was_too_much(ends(), subject(plan), allowance);
  }
  void note_too_much(const DprsResult& plan, double allowance) {
    ledger_.add_too_much(ends(), subject(plan), allowance);
  }

  // With fusions that have not been in a net somewhat better: what they save there, their routines' own times do not
  // tell, as the separate layers had what they read in their own core's caches.
  Objective with_fusions() const {
    Objective objective = objective_;
    for (size_t g = 0; g < costs_.fused.size(); ++g) {
      if (!costs_.fused[g].fusion->is_form()) raise(objective, 0, group(g), fusions_better);
    }
    return objective;
  }

  // With what has not been in a net as much worse as what has been in its place, at least.
  Objective sober() const {
    Objective objective = objective_;
    for (size_t l = 0; l < costs_.layers.size(); ++l) {
      for (size_t i = 0; i < costs_.layers[l].size(); ++i) {
        raise(objective, l, {static_cast<int>(i), -1}, factor(l));
      }
    }
    for (size_t g = 0; g < costs_.fused.size(); ++g) {
      double most = 1;
      for (const int l : costs_.fused[g].fusion->layers) most = std::max(most, factor(static_cast<size_t>(l)));
      raise(objective, 0, group(g), most);
    }
    return objective;
  }

 private:
  double factor(size_t layer) const {
    const auto at = worse_.find(layer);
    return at == worse_.end() ? 1 : at->second;
  }
  static DprsChoice group(size_t g) { return {-1, static_cast<int>(g)}; }
  static Arm arm(size_t layer, const DprsChoice& choice) {
    return choice.group >= 0 ? Arm(-1, choice.group) : Arm(static_cast<int>(layer), choice.label);
  }
  void raise(Objective& objective, size_t layer, const DprsChoice& choice, double factor) const {
    if (!seen_.contains(arm(layer, choice))) objective.seconds(layer, choice) *= factor;
  }

  std::string ends() const { return "allowance of graph " + graph_.structural_hash(); }
  std::string steps() const { return "steps of graph " + graph_.structural_hash(); }
  Subject subject(const DprsResult& plan) const { return to_assignment(graph_, costs_, plan); }

  // Seconds by layer, from the database if it has them.
  std::map<int, double> step_times(const Assignment& plan) {
    const std::string signature = steps();
    const Subject whole(plan);
    const auto step = [&](int layer) { return whole.part("layer " + std::to_string(layer)); };
    std::map<int, double> times;
    const int layers = static_cast<int>(graph_.layers().size());
    if (ledger_.find_time(signature, whole)) {
      for (int l = 0; l < layers; ++l) {
        if (const auto seconds = ledger_.find_time(signature, step(l))) times[l] = *seconds;
      }
      return times;
    }
    if (!trials_.may_measure()) return times;
    const auto net = trials_.prepare(graph_, plan);
    trials_.hold_packings();
    double sum = 0;
    const double once = trial_.run(*net, trials_.parallel_for);  // warms up, too
    const int rounds = std::clamp(static_cast<int>(enough_seconds / std::max(once, 1e-9)), least_runs, most_runs);
    for (const StepTime& time : net->profile(trial_.inputs(), trial_.outputs(), trials_.parallel_for, rounds)) {
      sum += time.seconds;
      if (time.layer < 0) continue;
      times[time.layer] = time.seconds;
      ledger_.add_time(signature, step(time.layer), time.seconds);
    }
    ledger_.add_time(signature, whole, sum);
    return times;
  }

  const Graph& graph_;
  const GraphCosts& costs_;
  Objective objective_;
  const Trials& trials_;
  Ledger ledger_;
  Trial trial_;
  std::set<Arm> seen_;              // in a net
  std::map<size_t, double> worse_;  // by layer: least ratio of the time in a net to the routine's own
};

}  // namespace

Refined refine(const Graph& graph, const GraphCosts& costs, const Objective& objective, const DprsResult& best,
               const PlanSearch& search, const Trials& trials) {
  const double start = trials.timekeeper.now();
  Refiner refiner(graph, costs, objective, trials);
  std::vector<DprsResult> seen{best};
  // A plan that nobody has run yet and that promises to win by enough.
  const auto find = [&](const Objective& changed) -> std::optional<DprsResult> {
    auto plan = search.solve(changed);
    if (!plan) return {};
    const DprsProblem problem = changed.priced();
    double least = INFINITY;
    for (const DprsResult& other : seen) {
      if (other.choices == plan->choices && other.adapts == plan->adapts) return {};
      least = std::min(least, plan_cost(problem, other));
    }
    if (plan_cost(problem, *plan) > worth_running * least) return {};
    return plan;
  };
  const double allowance = allowance_share * trials.settings.time_budget_s;
  const auto no_time = [&](const DprsResult& plan) {
    if (refiner.is_measured(plan)) return false;
    if (refiner.was_too_much(plan, allowance)) return true;
    const double spent = trials.timekeeper.now() - start, run = refiner.seconds(plan);
    if (spent + (least_runs + 1) * run <= std::min(allowance, trials.timekeeper.left() + spent)) return false;
    if (trials.may_measure()) refiner.note_too_much(plan, allowance);
    return true;
  };
  if (no_time(best)) return {{}, objective};
  while (refiner.correct(seen.back()) && seen.size() < most_plans) {
    std::optional<DprsResult> next;
    if (seen.size() == 1) next = find(refiner.with_fusions());
    if (!next) next = find(refiner.sober());
    if (!next || no_time(*next)) break;
    seen.push_back(std::move(*next));
  }
  Refined refined{{seen.begin() + 1, seen.end()}, refiner.sober()};
  std::erase_if(refined.plans, [&](const DprsResult& plan) { return !search.acceptable(plan); });
  return refined;
}

}  // namespace softneuro
