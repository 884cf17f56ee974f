#include "tune/tuner.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "tune/accuracy.h"
#include "tune/cost_keys.h"
#include "tune/solution.h"

namespace softneuro {
namespace {

using Clock = Profiler::Clock;

// Times the plans as whole nets, in turn; seconds by plan.
std::vector<double> time_as_wholes(const Graph& graph, const std::vector<Assignment>& plans,
                                   const TuneSettings& settings, const ParallelFor& parallel_for, PackedCache& cache) {
  std::vector<std::shared_ptr<const Net>> nets;
  for (const Assignment& plan : plans) nets.push_back(Net::prepare(graph, plan, settings.threads, cache));
  const auto make = [&](const std::vector<int>& blobs) {
    std::vector<std::vector<float>> memory;
    for (const int blob : blobs) memory.emplace_back(static_cast<size_t>(graph.blob(blob).desc.shape.elements()), 0.5F);
    return memory;
  };
  auto inputs = make(graph.inputs()), outputs = make(graph.outputs());
  std::vector<const float*> in;
  std::vector<float*> out;
  for (auto& memory : inputs) in.push_back(memory.data());
  for (auto& memory : outputs) out.push_back(memory.data());

  std::vector<std::vector<double>> samples(nets.size());
  const auto begin = Clock::now();
  for (int round = 0; round < 12; ++round) {
    for (size_t i = 0; i < nets.size(); ++i) {
      const auto start = Clock::now();
      nets[i]->run(in, out, parallel_for);
      // The first round only warms up.
      if (round > 0) samples[i].push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    if (round >= 3 && std::chrono::duration<double>(Clock::now() - begin).count() > 2) break;
  }
  std::vector<double> times;
  for (auto& sample : samples) times.push_back(winsorised_mean(sample));
  return times;
}

// From the database if it knows them all, else measured if the mode allows it, else empty.
std::vector<double> whole_times(const Graph& graph, const std::vector<Assignment>& plans, const TuneSettings& settings,
                                CostDb& db, const ParallelFor& parallel_for, PackedCache& cache) {
  Ledger ledger(db, settings.threads);
  const std::string signature = "graph " + graph.structural_hash();
  std::vector<double> times;
  for (const Assignment& plan : plans) {
    if (const auto known = ledger.find(signature, "plan " + content_hash(plan_text(plan)))) times.push_back(*known);
  }
  if (times.size() == plans.size()) return times;
  if (settings.mode != TuneMode::profile) return {};
  times = time_as_wholes(graph, plans, settings, parallel_for, cache);
  for (size_t i = 0; i < plans.size(); ++i) {
    ledger.add(signature, "plan " + content_hash(plan_text(plans[i])), times[i]);
  }
  return times;
}

// `price` is what inexact routines cost on top, which is no time.
void report(const Graph& graph, const GraphCosts& costs, const DprsResult& best, const DprsResult& chosen, double price,
            TuneResult& result) {
  result.predicted_s = chosen.cost - price * plan_noise(costs, chosen);
  result.lower_bound_s = best.lower_bound - price * plan_noise(costs, best);
  result.exact = best.exact;
  result.candidates = costs.candidates;
  result.measured = costs.measured;
  result.recalled = costs.recalled;
  result.guessed = costs.guessed;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    LayerReport entry{graph.layers()[l].name, graph.layers()[l].type, "", 0, best.regrets[l], true};
    if (const Candidate* candidate = chosen_candidate(costs, chosen, l)) {
      entry.descriptor = candidate->descriptor;
      entry.seconds = candidate->seconds;
      entry.measured = candidate->measured;
    }
    result.layers.push_back(std::move(entry));
  }
  for (const DprsAdapt& adapt : chosen.adapts) result.adapt_seconds.push_back(adapt.cost);
}

}  // namespace

TuneResult tune(const Graph& graph, const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                const Progress& progress) {
  const auto start = Clock::now();
  TuneResult result;
  const GraphCosts costs = find_costs(graph, settings, db, parallel_for, progress);
  PackedCache cache;
  const AccurateSolution solution =
      solve_within_budget(graph, costs, to_dprs(graph, costs), settings, db, parallel_for, cache);
  const DprsResult& best = solution.best;
  std::vector<DprsResult> plans{best};
  if (settings.mode != TuneMode::off && settings.integrated_plans > 1) {
    plans = dprs_k_best(solution.problem, best, settings.integrated_plans);
    if (solution.price > 0) {
      std::erase_if(plans, [&](const DprsResult& plan) { return plan_noise(costs, plan) > solution.noise; });
    }
  }
  std::vector<Assignment> assignments;
  for (const DprsResult& plan : plans) assignments.push_back(to_assignment(graph, costs, plan));
  size_t chosen = 0;
  if (assignments.size() > 1) {
    // A warm start finds the wholes' times in the database and so neither measures nor changes its mind.
    const auto times = whole_times(graph, assignments, settings, db, parallel_for, cache);
    if (!times.empty()) {
      chosen = static_cast<size_t>(std::min_element(times.begin(), times.end()) - times.begin());
      result.integrated_s = times[chosen];
    }
  }
  report(graph, costs, best, plans[chosen], solution.price, result);
  result.assignment = std::move(assignments[chosen]);
  result.tuning_s = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

TuneResult carry_over(const Graph& graph, const std::vector<std::string>& descriptors, const TuneSettings& settings) {
  if (descriptors.size() != graph.layers().size()) {
    throw Error("the plan has " + std::to_string(descriptors.size()) + " layers, the graph " +
                    std::to_string(graph.layers().size()),
                {}, "tune this model anew");
  }
  GraphCosts costs = guess_costs(graph, settings);
  for (size_t l = 0; l < descriptors.size(); ++l) {
    for (Candidate& candidate : costs.layers[l]) {
      // Guesses decide only where the plan's routine declines the new shape.
      if (candidate.descriptor == descriptors[l]) candidate.seconds = 0;
    }
  }
  for (FusedCost& fused : costs.fused) {
    const std::string& wanted = descriptors[static_cast<size_t>(fused.fusion->layers.back())];
    const bool same = wanted.starts_with(fused.candidate.choice.routine->descriptor());
    const bool inside = std::all_of(fused.fusion->layers.begin(), fused.fusion->layers.end() - 1,
                                    [&](int layer) { return descriptors[static_cast<size_t>(layer)].empty(); });
    if (same && inside) fused.candidate.seconds = 0;
  }
  const DprsProblem problem = to_dprs(graph, costs);
  const DprsResult best = dprs_solve(problem);
  TuneResult result;
  report(graph, costs, best, best, 0, result);
  result.assignment = to_assignment(graph, costs, best);
  return result;
}

}  // namespace softneuro
