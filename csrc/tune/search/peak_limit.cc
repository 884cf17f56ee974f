#include "tune/search/peak_limit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "tune/search/measures.h"
#include "tune/search/solution.h"

namespace softneuro {
namespace {

constexpr int most_rounds = 12;
constexpr double worth_looking = 0.005;  // of the limit: what a plan leaves of it

// As it will be, with what pads it.
Measure whole_packings(const Graph& graph, const GraphCosts& costs, int threads) {
  return measure_candidates(graph, costs, [&](const Candidate& candidate, int layer) {
    if (candidate.packed_bytes == 0) return 0.0;
    const std::string& type = candidate.choice.routine->info().layer_type;
    if (type == graph.layers()[static_cast<size_t>(layer)].type) {
      const Problem problem = graph.problem(layer, threads);
      return static_cast<double>(candidate.choice.routine->packing(problem, candidate.choice.tuning).bytes());
    }
    return static_cast<double>(candidate.packed_bytes);
  });
}

double share(const std::map<int, double>& counts, int layer, double all) {
  const auto at = counts.find(layer);
  return at == counts.end() || all == 0 ? 0 : at->second / all;
}

// What a blob has in the arena; nothing where it is the caller's, in the schema that the caller has it in.
double blob_bytes(const Graph& graph, int blob, const Schema& schema) {
  const auto is_callers = [&](const std::vector<int>& blobs, const std::vector<Schema>& schemas) {
    for (size_t i = 0; i < blobs.size(); ++i) {
      if (blobs[i] == blob && schemas[i] == schema) return true;
    }
    return false;
  };
  if (is_callers(graph.inputs(), graph.input_schemas()) || is_callers(graph.outputs(), graph.output_schemas()))
    return 0;
  return static_cast<double>(bytes(graph.blob(blob).desc, schema));
}

std::string text_of_bytes(double bytes) {
  char text[64];
  const double mib = bytes / 1048576.0;
  std::snprintf(text, sizeof(text), "%.0f bytes (%.*f MiB)", bytes, mib < 10 ? 3 : 1, mib);
  return text;
}

}  // namespace

PeakLimit::PeakLimit(const Graph& graph, const GraphCosts& costs, const TuneSettings& settings)
    : graph_(graph),
      costs_(costs),
      settings_(settings),
      limit_(settings.max_memory.bytes(model_weight_bytes(graph))),
      packed_(settings.max_memory.bounds_peak() ? whole_packings(graph, costs, settings.threads)
                                                : packed_bytes(graph, costs)) {}

const MemoryForecast& PeakLimit::forecast(const DprsResult& plan) {
  const Assignment assignment = to_assignment(graph_, costs_, plan);
  const auto [at, fresh] = forecasts_.try_emplace(plan_text(assignment));
  if (fresh) at->second = Net::foresee(graph_, assignment, settings_.threads, cache_);
  return at->second;
}

void PeakLimit::note_fullest(const DprsResult& plan) {
  const MemoryForecast& known = forecast(plan);
  if (known.steps.empty()) return;
  const auto fuller = [](const StepMemory& a, const StepMemory& b) {
    return a.blobs + a.workspace < b.blobs + b.workspace;
  };
  const auto busier = [](const StepMemory& a, const StepMemory& b) { return a.task < b.task; };
  fullest_[std::max_element(known.steps.begin(), known.steps.end(), fuller)->layer] += 1;
  busiest_[std::max_element(known.steps.begin(), known.steps.end(), busier)->layer] += 1;
  seen_ += 1;
}

const WorkspaceSize& PeakLimit::workspace(const Problem& problem, const Candidate& candidate, int layer) {
  const auto [at, fresh] = workspaces_.try_emplace({layer, candidate.descriptor});
  const Routine& routine = *candidate.choice.routine;
  if (!fresh || routine.info().view || problem.out().shape.elements() == 0) return at->second;
  try {
    Unpacked unpacked;
    auto packed = unpacked.get(candidate.choice, problem);
    at->second = routine.prepare(problem, candidate.choice.tuning, std::move(packed))->workspace();
  } catch (const Error&) {  // whoever takes it is told
  }
  return at->second;
}

// What a candidate's step has, the two kinds of it by how much they count.
double PeakLimit::step_bytes(const Problem& problem, const Candidate& candidate, int layer, double full, double busy) {
  const WorkspaceSize& size = workspace(problem, candidate, layer);
  double blobs = 0;
  const Layer& own = *problem.layer;
  for (size_t i = 0; i < own.inputs.size(); ++i) blobs += blob_bytes(graph_, own.inputs[i], candidate.in[i]);
  for (size_t k = 0; k < own.outputs.size(); ++k) blobs += blob_bytes(graph_, own.outputs[k], candidate.outs[k]);
  // Of the most that any step's tasks need there is as much as any step has tasks.
  const double tasks = settings_.threads * static_cast<double>(size.stride());
  return full * (blobs + static_cast<double>(size.shared_lines())) + busy * tasks;
}

// Packed weights, and what the fullest steps have.
Measure PeakLimit::counted() {
  Measure measure = packed_;
  for (size_t l = 0; l < graph_.layers().size(); ++l) {
    const auto layer = static_cast<int>(l);
    const double full = share(fullest_, layer, seen_), busy = share(busiest_, layer, seen_);
    if (full == 0 && busy == 0) continue;
    const Problem problem = graph_.problem(layer, settings_.threads);
    for (size_t i = 0; i < costs_.layers[l].size(); ++i) {
      measure.labels[l][i] += step_bytes(problem, costs_.layers[l][i], layer, full, busy);
    }
  }
  for (size_t g = 0; g < costs_.fused.size(); ++g) {
    const Fusion& fusion = *costs_.fused[g].fusion;
    double full = 0, busy = 0;
    for (const int layer : fusion.layers) full += share(fullest_, layer, seen_), busy += share(busiest_, layer, seen_);
    if (full == 0 && busy == 0) continue;
    const Problem problem = fusion_problem(graph_, fusion, settings_.threads);
    measure.groups[g] += step_bytes(problem, costs_.fused[g].candidate, fusion.layers.back(), full, busy);
  }
  return measure;
}

void PeakLimit::look_for(const Objective& objective, const DprsResult& free, int k, LimitedPlans& found) {
  const DprsProblem problem = objective.priced();
  std::vector<DprsResult> fitting;
  DprsResult smallest = free;
  std::set<std::string> tried;
  const auto note = [&](DprsResult plan) {
    plan.lower_bound = std::min(free.lower_bound, plan.cost);
    plan.exact = false;
    const double own = peak(plan);
    if (own < peak(smallest)) smallest = plan;
    if (own <= limit_) fitting.push_back(std::move(plan));
  };
  if (seen_ == 0) {
    note_fullest(free);
    uncounted_ = peak(free) - counted().of(free);
  }
  std::vector<double> regrets = free.regrets;
  double least_cost = INFINITY;
  for (int round = 0; round < most_rounds; ++round) {
    const Measure measure = counted();
    // A bound of nothing is no bound that plans may be above by a share of it.
    const double bound = std::max(limit_ - uncounted_, 1.0);
    LimitedPlans within = solve_within(objective, measure, bound, k);
    DprsResult front = within.plans.front();
    for (DprsResult& plan : within.plans) {
      plan.cost = plan_cost(problem, plan);
      note(plan);
    }
    const double own = peak(front);
    uncounted_ = own - measure.of(front);
    if (own <= limit_ && front.cost < least_cost) least_cost = front.cost, regrets = within.regrets;
    const bool known = !tried.insert(plan_text(to_assignment(graph_, costs_, front))).second;
    const bool slack = limit_ - own > worth_looking * limit_;
    if (own <= limit_ && (known || !slack || !within.limited)) break;
    if (own > limit_) note_fullest(front);
    if (own > limit_ && known && !fitting.empty()) break;
  }
  std::stable_sort(fitting.begin(), fitting.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
  found.regrets = std::move(regrets);
  found.plans.clear();
  for (DprsResult& plan : fitting) {
    const bool twice = std::any_of(found.plans.begin(), found.plans.end(),
                                   [&](const DprsResult& other) { return other.choices == plan.choices; });
    if (!twice && found.plans.size() < static_cast<size_t>(std::max(k, 1))) found.plans.push_back(std::move(plan));
  }
  found.fits = !found.plans.empty();
  if (!found.fits) found.plans.push_back(std::move(smallest));
}

LimitedPlans PeakLimit::solve(const Objective& objective, int k) {
  if (!bounds_peak()) return solve_within(objective, packed_, limit_, k);
  LimitedPlans found = solve_within(objective, packed_, INFINITY, k);
  const DprsResult best = found.plans.front();
  if (peak(best) <= limit_) {
    std::erase_if(found.plans, [&](const DprsResult& plan) { return peak(plan) > limit_; });
    return found;
  }
  found.limited = true;
  look_for(objective, best, k, found);
  return found;
}

std::optional<Bound> PeakLimit::packed_bound() const {
  if (bounds_peak() || !std::isfinite(limit_)) return {};
  return Bound{packed_, limit_};
}

std::string PeakLimit::complaint(const DprsResult& plan) {
  const NetStats& stats = forecast(plan).stats;
  return "no plan was found within max_memory=" + settings_.max_memory.str() + ", " + text_of_bytes(limit_) +
         ": the smallest takes " + text_of_bytes(peak(plan)) + ", " +
         text_of_bytes(static_cast<double>(stats.border_bytes)) + " of it inputs and outputs, " +
         text_of_bytes(static_cast<double>(stats.arena_bytes)) + " blobs and workspaces";
}

}  // namespace softneuro
