#include "tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "tune/measure/cost_log.h"
#include "tune/measure/refine.h"
#include "tune/measure/trial.h"
#include "tune/plan/carry.h"
#include "tune/records/cost_keys.h"
#include "tune/search/accuracy.h"
#include "tune/search/in_budget.h"
#include "tune/search/in_floats.h"
#include "tune/search/measures.h"
#include "tune/search/peak_limit.h"
#include "tune/search/solution.h"
#include "tune/search/sparse_gain.h"

namespace softneuro {
namespace {

constexpr int most_whole_rounds = 30, least_whole_rounds = 3;
constexpr size_t most_wholes = 4;
constexpr double least_held = 256 << 20, held_share = 1.5;  // of packed weights between trials; of the model's
constexpr double promising = 1.03;                          // of the best plan's time by what was seen in nets
constexpr double wholes_share = 0.08;                       // of the time budget
// By which multiple of the best one's time a plan leaves after so many rounds.
double clearly_slower(int rounds) { return rounds < 5 ? 1.1 : rounds < 10 ? 1.05 : 1.02; }

// Times the plans as whole nets, in turn; seconds by plan. The slower ones drop out.
std::vector<double> time_as_wholes(const Graph& graph, const std::vector<Assignment>& plans, const Trials& trials) {
  std::vector<std::shared_ptr<const Net>> nets;
  for (const Assignment& plan : plans) nets.push_back(trials.prepare(graph, plan));
  trials.held.clear();  // the nets have what they need
  Trial trial(graph);
  std::vector<std::vector<double>> samples(nets.size());
  std::vector<double> centres(nets.size(), INFINITY);
  const double start = trials.timekeeper.now();
  for (const auto& net : nets) trial.run(*net, trials.parallel_for);  // warms up
  for (int round = 0; round < most_whole_rounds; ++round) {
    const double best = *std::min_element(centres.begin(), centres.end());
    size_t running = 0;
    for (size_t i = 0; i < nets.size(); ++i) {
      if (round >= least_whole_rounds && centres[i] > clearly_slower(round) * best) continue;
      ++running;
      samples[i].push_back(trial.run(*nets[i], trials.parallel_for));
      centres[i] = winsorised_mean(samples[i]);
    }
    if (running == 1) break;
    const double spent = trials.timekeeper.now() - start;
    if (round + 1 >= least_whole_rounds && spent > wholes_share * trials.settings.time_budget_s) break;
  }
  std::vector<std::vector<double>*> paced;
  for (auto& own : samples) paced.push_back(&own);
  set_pace(paced);
  std::vector<double> times;
  for (const auto& sample : samples) {
    times.push_back(winsorised_mean(sample));
    log_progress("tune: plan " + std::to_string(times.size()) + " of " + std::to_string(nets.size()) +
                 " as a whole: " + std::to_string(1e3 * times.back()) + " ms");
  }
  return times;
}

// From the database if it knows them all, else measured if the mode and the time allow it, else infinite where they are
// not known. `seconds`: what one run is likely to take.
std::vector<double> whole_times(const Graph& graph, const std::vector<Assignment>& plans, double seconds,
                                const Trials& trials) {
  Ledger ledger(trials.db, trials.settings.threads);
  const std::string signature = "graph " + graph.structural_hash();
  std::vector<double> times;
  for (const Assignment& plan : plans) {
    times.push_back(ledger.find_time(signature, plan).value_or(INFINITY));
  }
  const bool all_known = std::all_of(times.begin(), times.end(), [](double time) { return std::isfinite(time); });
  if (all_known || !trials.may_measure()) return times;
  // Without the time for it now, a later run that has no more is not to measure, either.
  const double budget = trials.settings.time_budget_s;
  const std::string ends = "allowance of graph " + graph.structural_hash();
  const Subject wholes = Subject(plans.front()).part("wholes");
  if (ledger.was_too_much(ends, wholes, budget)) return times;
  const double least = (least_whole_rounds + 1) * seconds * static_cast<double>(plans.size());
  if (least > std::min(2 * wholes_share * budget, trials.timekeeper.left())) {
    ledger.add_too_much(ends, wholes, budget);
    return times;
  }
  times = time_as_wholes(graph, plans, trials);
  for (size_t i = 0; i < plans.size(); ++i) {
    ledger.add_time(signature, plans[i], times[i]);
  }
  return times;
}

// By plan, once those are gone that do what one before them does. The database has one time for both, while a run would
// have two and choose by the lucky one.
std::vector<Assignment> distinct_assignments(const Graph& graph, const GraphCosts& costs,
                                             std::vector<DprsResult>& plans) {
  std::vector<Assignment> assignments;
  std::set<std::string> texts;
  std::erase_if(plans, [&](const DprsResult& plan) {
    Assignment assignment = to_assignment(graph, costs, plan);
    if (!texts.insert(plan_text(assignment)).second) return true;
    assignments.push_back(std::move(assignment));
    return false;
  });
  return assignments;
}

// The best plan of floats alone; nothing if it does not keep to the limits.
std::optional<DprsResult> floats_alone(const GraphCosts& costs, const Objective& objective, PeakLimit& memory) {
  Measure forms;
  for (const auto& labels : objective.seconds().layers) forms.labels.emplace_back(labels.labels.size(), 0);
  for (const FusedCost& fused : costs.fused) forms.groups.push_back(fused.fusion->is_form() ? 1 : 0);
  Objective floats = objective;
  floats.add(std::move(forms), Pricing::bound, forbidden);
  LimitedPlans found = memory.solve(floats, 1);
  if (!found.fits || has_forms(costs, found.plans.front())) return {};
  return std::move(found.plans.front());
}

// Plans that may be the fastest as wholes, the most promising first. One of floats is among them if there is any: forms
// that win one by one may lose together.
std::vector<size_t> finalists(const std::vector<DprsResult>& plans, const Objective& objective,
                              const GraphCosts& costs) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < plans.size(); ++i) {
    // All keep to the bounds, and none is the better for having less of what is bounded.
    order.emplace_back(plan_cost(objective.seconds(), plans[i]) + objective.worth(plans[i]), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<size_t> list;
  for (const auto& [cost, index] : order) {
    if (list.size() >= 2 && (list.size() == most_wholes || cost > promising * order.front().first)) break;
    list.push_back(index);
  }
  if (costs.grids == nullptr) return list;
  const auto of_floats =
      std::find_if(order.begin(), order.end(), [&](const auto& plan) { return !has_forms(costs, plans[plan.second]); });
  const bool lacks = of_floats != order.end() && std::find(list.begin(), list.end(), of_floats->second) == list.end();
  if (lacks) list.push_back(of_floats->second);
  return list;
}

// What settings.max_memory has done.
void note_memory(const Graph& graph, const LimitedPlans& found, PeakLimit& memory, TuneResult& result) {
  result.weight_bytes = model_weight_bytes(graph);
  result.memory_limited = found.limited;
  result.memory_fits = found.fits;
  if (!found.fits && memory.bounds_peak()) log_warning("tune: " + memory.complaint(found.plans.front()));
}

void report(const Graph& graph, const GraphCosts& costs, const Objective& objective, const LimitedPlans& found,
            size_t index, TuneResult& result) {
  const DprsResult &best = found.plans.front(), &chosen = found.plans[index];
  result.predicted_s = 0;
  result.lower_bound_s =
      found.proven ? *found.proven - objective.worth(chosen) : best.lower_bound - objective.prices(chosen);
  result.exact = best.exact;
  result.candidates = costs.candidates;
  result.measured = costs.measured;
  result.recalled = costs.recalled;
  result.guessed = costs.guessed;
  result.packed_bytes = packed_bytes(graph, costs).of(chosen);
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    LayerReport entry{graph.layers()[l].name, graph.layers()[l].type, "", 0, found.regrets[l], true};
    if (const Candidate* candidate = chosen_candidate(costs, chosen, l)) {
      entry.descriptor = candidate->descriptor;
      entry.seconds = candidate->seconds;
      entry.measured = candidate->measured;
      result.predicted_s += candidate->seconds;
    }
    result.layers.push_back(std::move(entry));
  }
  const size_t n = costs.schemas.size();
  for (const DprsAdapt& adapt : chosen.adapts) {  // whose own costs may have a price on top
    const auto edge = static_cast<size_t>(adapt.from) * n + static_cast<size_t>(adapt.to);
    result.adapt_seconds.push_back(costs.adapts[static_cast<size_t>(adapt.blob)][edge]);
    result.predicted_s += result.adapt_seconds.back();
  }
  // What the prices' rounding has added must not put an optimal plan below its bound.
  const double over = result.lower_bound_s - result.predicted_s;
  if (over > 0 && over < 1e-9 * result.predicted_s) result.lower_bound_s = result.predicted_s;
}

// The error of a plan's routine that has proven bearable for another shape. No error if params mean nothing here.
double proven_error(const Problem& problem, const RoutineChoice& choice) {
  try {
    return choice.routine->expected_error(problem, choice.tuning);
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

TuneResult tune(const Graph& graph, const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                const Progress& progress) {
  Timekeeper timekeeper(settings.time_budget_s);
  TuneResult result;
  GraphCosts costs = find_costs(graph, settings, db, parallel_for, progress, timekeeper);
  const double most_held = std::max(least_held, held_share * model_weight_bytes(graph));
  const Trials trials{settings, db, parallel_for, PackedCache::shared(), timekeeper, most_held};
  auto stage = std::make_optional<Timekeeper::Stage>(timekeeper, "solve");
  const Measure weighed_bytes = weighed(packed_bytes(graph, costs));
  Objective objective(to_dprs(graph, costs));
  objective.add(weighed_bytes, Pricing::worth,
                memory_price(objective.seconds(), weighed_bytes, model_weight_bytes(graph)));
  objective.add(passed_bytes(graph, costs), Pricing::worth, passing_price(settings.threads));
  Accuracy accuracy(graph, costs, objective, trials);
  stage.emplace(timekeeper, "accuracy");
  accuracy.find_price();
  stage.emplace(timekeeper, "solve");
  const int wholes = settings.mode == TuneMode::off ? 1 : settings.integrated_plans;
  PeakLimit memory(graph, costs, settings);
  const auto acceptable = [&](const DprsResult& plan) {
    const auto trial = timekeeper.in("accuracy");
    return accuracy.holds(plan);
  };
  const bool budgeted = costs.grids != nullptr;
  LimitedPlans found =
      budgeted ? plans_in_budget(objective, accuracy, memory, wholes, acceptable) : memory.solve(objective, wholes);
  note_memory(graph, found, memory, result);
  found.plans.erase(std::remove_if(found.plans.begin() + 1, found.plans.end(), std::not_fn(acceptable)),
                    found.plans.end());
  const PlanSearch search{.solve = [&](const Objective& changed) -> std::optional<DprsResult> {
                            const auto solving = timekeeper.in("solve");
                            if (found.proven) return solve_in_budget(changed, accuracy, memory).plan;
                            LimitedPlans again = memory.solve(changed, 1);
                            if (again.fits != found.fits) return {};
                            return std::move(again.plans.front());
                          },
                          .acceptable = acceptable};
  if (budgeted && wholes > 1) {
    if (auto floats = floats_alone(costs, objective, memory)) found.plans.push_back(std::move(*floats));
  }
  Objective seen = objective;
  if (wholes > 1) {
    stage.emplace(timekeeper, "in the net");
    // All plans keep to the bound of errors, and none is the better for less of them.
    const Objective& own = found.proven ? accuracy.unpriced(objective) : objective;
    Refined refined = refine(graph, costs, own, found.plans.front(), search, trials);
    for (DprsResult& plan : refined.plans) found.plans.push_back(std::move(plan));
    seen = std::move(refined.objective);
  }
  stage.emplace(timekeeper, "as wholes");
  const std::vector<Assignment> assignments = distinct_assignments(graph, costs, found.plans);
  size_t chosen = 0;
  if (assignments.size() > 1) {
    const std::vector<size_t> last = finalists(found.plans, seen, costs);
    std::vector<Assignment> plans;
    for (const size_t index : last) plans.push_back(assignments[index]);
    // A warm start finds the wholes' times in the database and so neither measures nor changes its mind.
    const auto times = whole_times(graph, plans, plan_cost(seen.seconds(), found.plans[last.front()]), trials);
    double of_floats = INFINITY;
    for (size_t i = 0; i < last.size(); ++i) {
      if (!has_forms(costs, found.plans[last[i]])) of_floats = std::min(of_floats, times[i]);
    }
    size_t best = 0;
    double least = INFINITY;
    for (size_t i = 0; i < last.size(); ++i) {
      // Whoever bears errors wants time for them, whatever memory forms save.
      if (times[i] > of_floats && has_forms(costs, found.plans[last[i]])) continue;
      const double worth = times[i] + objective.worth(found.plans[last[i]]);
      if (worth < least) least = worth, best = i;
    }
    chosen = last[best];
    if (std::isfinite(times[best])) result.integrated_s = times[best];
  }
  report(graph, costs, objective, found, chosen, result);
  result.assignment = assignments[chosen];
  // Without the weights of forms that were not chosen, for as long as the plan lives.
  if (const auto& grids = result.assignment.grids) {
    result.assignment.grids = std::make_shared<const Grids>(graph, grids->blobs(), grids->learnt());
  }
  if (memory.bounds_peak()) result.peak_bytes = memory.peak(found.plans[chosen]);
  result.proven = accuracy.proven(found.plans[chosen]);
  if (result.assignment.grids != nullptr) result.foretold_error = accuracy.foretold(found.plans[chosen]);
  note_floats(graph, settings.threads, result);
  note_sparse_gain(graph, costs, objective, found.plans.front(), search.solve, result);
  stage.reset();
  result.tuning_s = timekeeper.spent();
  result.stages = timekeeper.stages();
  log_stages(result.stages);
  return result;
}

TuneResult carry_over(const Graph& graph, const std::vector<std::string>& descriptors, const TuneSettings& settings) {
  if (descriptors.size() != graph.layers().size()) {
    throw Error("the plan has " + std::to_string(descriptors.size()) + " layers, the graph " +
                    std::to_string(graph.layers().size()),
                {}, "tune this model anew");
  }
  GraphCosts costs = guess_costs(graph, settings);
  std::vector<double> proven(descriptors.size(), 0);
  for (size_t l = 0; l < descriptors.size(); ++l) {
    if (costs.layers[l].empty() || descriptors[l].empty()) continue;
    const Problem problem = graph.problem(static_cast<int>(l), settings.threads);
    const RoutineChoice wanted = find_routine(descriptors[l]);
    // Guesses decide only where the plan's routine declines the new shape.
    for (Candidate& candidate : costs.layers[l]) {
      if (candidate.choice.routine != wanted.routine) continue;
      candidate.seconds *= params_distance(problem, wanted, candidate.choice);
      proven[l] = proven_error(problem, wanted);
    }
  }
  for (FusedCost& fused : costs.fused) {
    const auto last = static_cast<size_t>(fused.fusion->layers.back());
    const std::string& wanted = descriptors[last];
    const bool same = wanted.starts_with(fused.candidate.choice.routine->descriptor());
    const bool inside = std::all_of(fused.fusion->layers.begin(), fused.fusion->layers.end() - 1,
                                    [&](int layer) { return descriptors[static_cast<size_t>(layer)].empty(); });
    // Guesses never make a form of what was none: nobody has foretold its error.
    if (fused.fusion->is_form() && !same) fused.candidate.seconds = INFINITY;
    if (!same || !inside) continue;
    fused.candidate.seconds = 0;
    proven[last] = proven_error(fusion_problem(graph, *fused.fusion, settings.threads), find_routine(wanted));
  }
  TuneResult result;
  result.carried = true;
  Objective objective(to_dprs(graph, costs));
  objective.add(unproven_errors(graph, costs, proven), Pricing::bound, forbidden);
  PeakLimit memory(graph, costs, settings);
  const LimitedPlans found = memory.solve(objective, 1);
  note_memory(graph, found, memory, result);
  report(graph, costs, objective, found, 0, result);
  result.assignment = to_assignment(graph, costs, found.plans.front());
  if (memory.bounds_peak()) result.peak_bytes = memory.peak(found.plans.front());
  return result;
}

}  // namespace softneuro
