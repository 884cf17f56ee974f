#include "tune/accuracy.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/half.h"
#include "base/log.h"
#include "base/text.h"
#include "tune/cost_keys.h"
#include "tune/solution.h"
#include "tune/trial.h"

namespace softneuro {
namespace {

constexpr double budget_share = 0.5;
constexpr int attempts = 4;
constexpr size_t most_sections = 16;
constexpr double sections_share = 0.15;  // of the time that tuning may take
constexpr double forbidden = 1e6;        // seconds

// Nearly normal values of variance one, as images commonly are after normalisation.
Tensors random_inputs(const Graph& graph) {
  Tensors tensors;
  uint32_t state = 2463534242;
  const auto uniform = [&] {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return static_cast<float>(state >> 8) * (2.0F / 16777216.0F) - 1.0F;
  };
  for (size_t k = 0; k < graph.inputs().size(); ++k) {
    const TensorDesc& desc = graph.blob(graph.inputs()[k]).desc;
    // Of integers some of each: nearly normal around the middle of a byte.
    const bool integer = desc.kind == ValueKind::integer || desc.quantization != nullptr;
    tensors.emplace_back(desc, graph.input_schemas()[k]).fill([&] {
      const float x = uniform() + uniform() + uniform();
      return integer ? 128 + 40 * x : x;
    });
  }
  return tensors;
}

// Relative L2, the worst of the outputs; infinite where one is not finite and the other is.
double difference(const Tensors& results, const Tensors& expected) {
  double worst = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    double noise = 0, norm = 0;
    const auto count = static_cast<size_t>(physical_elements(results[i].desc.shape, results[i].schema.layout));
    const auto value = [&](const HostTensor& tensor, size_t j) {
      return with_dtype(tensor.schema.dtype, [&](auto kind) {
        return static_cast<double>(element_value(static_cast<const decltype(kind)*>(tensor.memory.data())[j]));
      });
    };
    for (size_t j = 0; j < count; ++j) {
      const double x = value(results[i], j), y = value(expected[i], j);
      if (std::isfinite(x) != std::isfinite(y)) return INFINITY;
      if (!std::isfinite(y)) continue;
      noise += (x - y) * (x - y);
      norm += y * y;
    }
    worst = std::max(worst, norm > 0 ? std::sqrt(noise / norm) : std::sqrt(noise));
  }
  return worst;
}

// The costs of inexact labels raised by what `surcharge` says of their layer and squared expected error.
template <typename Surcharge>
DprsProblem with_surcharge(const DprsProblem& problem, const GraphCosts& costs, const Surcharge& surcharge) {
  DprsProblem priced = problem;
  for (size_t l = 0; l < costs.layers.size(); ++l) {
    for (size_t i = 0; i < costs.layers[l].size(); ++i) {
      const double error = costs.layers[l][i].error;
      if (error > 0) priced.layers[l].labels[i].cost += surcharge(l, error * error);
    }
  }
  for (size_t g = 0; g < costs.fused.size(); ++g) {
    const double error = costs.fused[g].candidate.error;
    const auto last = static_cast<size_t>(costs.fused[g].fusion->layers.back());
    if (error > 0) priced.groups[g].cost += surcharge(last, error * error);
  }
  return priced;
}

// Expected errors become those of the outputs.
void magnify(GraphCosts& costs, const std::vector<double>& factors) {
  for (size_t l = 0; l < factors.size(); ++l) {
    for (Candidate& candidate : costs.layers[l]) candidate.error *= factors[l];
  }
  for (FusedCost& fused : costs.fused) {
    fused.candidate.error *= factors[static_cast<size_t>(fused.fusion->layers.back())];
  }
}

AccurateSolution solve_at_price(const GraphCosts& costs, const DprsProblem& problem, double price) {
  AccurateSolution solution;
  solution.problem = with_surcharge(problem, costs, [&](size_t, double square) { return price * square; });
  solution.best = dprs_solve(solution.problem);
  solution.price = price;
  solution.noise = plan_noise(costs, solution.best);
  return solution;
}

// The lowest price, within a quarter, whose best plan has no more noise than allowed: the fastest plan of its noise.
AccurateSolution solve_within_noise(const GraphCosts& costs, const DprsProblem& problem, const AccurateSolution& over,
                                    double allowed) {
  double low = 0, high = std::max(over.best.cost, 1e-9) / allowed;
  AccurateSolution within = solve_at_price(costs, problem, high);
  while (within.noise > allowed && high < 1e30) within = solve_at_price(costs, problem, high *= 16);
  low = high / 4096;
  for (int step = 0; step < 6; ++step) {
    const double middle = std::sqrt(low * high);
    AccurateSolution tried = solve_at_price(costs, problem, middle);
    if (tried.noise > allowed) {
      low = middle;
    } else {
      high = middle;
      within = std::move(tried);
    }
  }
  return within;
}

}  // namespace

double plan_noise(const GraphCosts& costs, const DprsResult& plan) {
  double noise = 0;
  for (size_t l = 0; l < costs.layers.size(); ++l) {
    if (const Candidate* candidate = chosen_candidate(costs, plan, l)) noise += candidate->error * candidate->error;
  }
  return noise;
}

Accuracy::Accuracy(const Graph& graph, GraphCosts& costs, const DprsProblem& problem, const Trials& trials)
    : graph_(graph),
      costs_(costs),
      problem_(problem),
      trials_(trials),
      ledger_(trials.db, trials.settings.threads),
      budget_(budget_share * trials.settings.limits.max_error) {}

Tensors Accuracy::run(const Assignment& assignment) {
  const auto net = trials_.prepare(graph_, assignment);
  Trial trial(graph_, random_inputs(graph_));
  trial.run(*net, trials_.parallel_for);
  return trial.take_outputs();
}

// Against the plan of exact routines; nothing where it is not known and not to be measured.
std::optional<double> Accuracy::error(const DprsResult& plan) {
  const Assignment assignment = to_assignment(graph_, costs_, plan);
  const std::string signature = "error of graph " + graph_.structural_hash();
  const std::string descriptor = "plan " + content_hash(plan_text(assignment));
  const auto known = ledger_.find(signature, descriptor);
  if (known || !trials_.may_measure()) return known;
  if (expected_.empty()) {
    const DprsProblem exact = with_surcharge(problem_, costs_, [](size_t, double) { return forbidden; });
    expected_ = run(to_assignment(graph_, costs_, dprs_solve(exact)));
  }
  // The database holds numbers below an hour in seconds.
  const double error = std::min(difference(run(assignment), expected_), 1e3);
  ledger_.add(signature, descriptor, error);
  return error;
}

// By layer, what the network makes of its error: the outputs' over the expected one. The plan's inexact layers are
// taken in sections, one after the other in a plan that is exact elsewhere. `usual` where that says nothing or time
// is up.
std::vector<double> Accuracy::magnifications(const DprsResult& plan, double usual) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::vector<size_t> inexact;
  for (size_t l = 0; l < costs_.layers.size(); ++l) {
    const Candidate* candidate = chosen_candidate(costs_, plan, l);
    if (candidate == nullptr || candidate->error == 0) continue;
    const int group = plan.choices[l].group;  // begins with its first layer, which may be computed without it, too
    const auto first = group < 0 ? l : static_cast<size_t>(costs_.fused[static_cast<size_t>(group)].fusion->layers[0]);
    inexact.push_back(inexact.empty() ? first : std::max(first, inexact.back()));
  }
  std::vector<double> result(costs_.layers.size(), usual);
  const size_t sections = std::min(inexact.size(), most_sections);
  for (size_t i = 0; i < sections; ++i) {
    const double spent = std::chrono::duration<double>(Clock::now() - start).count();
    if (spent > sections_share * trials_.settings.time_budget_s) break;
    const size_t begin = i > 0 ? inexact[i * inexact.size() / sections] : 0;
    const size_t end = i + 1 < sections ? inexact[(i + 1) * inexact.size() / sections] : result.size();
    const DprsResult part = dprs_solve(
        with_surcharge(problem_, costs_, [&](size_t l, double) { return l >= begin && l < end ? 0 : forbidden; }));
    const double noise = plan_noise(costs_, part), measured = noise > 0 ? error(part).value_or(0) : 0;
    if (measured > 0) std::fill(result.data() + begin, result.data() + end, measured / std::sqrt(noise));
  }
  return result;
}

AccurateSolution Accuracy::solve() {
  AccurateSolution solution = solve_at_price(costs_, problem_, 0);
  if (trials_.settings.mode == TuneMode::off) return solution;
  for (int attempt = 0; solution.noise > 0; ++attempt) {
    const double measured = error(solution.best).value_or(0);
    if (measured <= budget_) break;
    if (attempt == 0) {
      magnify(costs_, magnifications(solution.best, measured / std::sqrt(solution.noise)));
      solution.noise = plan_noise(costs_, solution.best);
    }
    // As if errors added up like those of independent sums; where that is wrong, the next measurement says so.
    const double allowed = attempt < attempts ? 0.7 * solution.noise * std::pow(budget_ / measured, 2) : 1e-30;
    log_info("tune: the plan's error of " + std::to_string(measured) + " is above half of max_error, choosing again");
    solution = solve_within_noise(costs_, problem_, solution, allowed);
  }
  return solution;
}

bool Accuracy::holds(const DprsResult& plan, double noise) {
  if (plan_noise(costs_, plan) <= noise) return true;
  const auto measured = error(plan);
  return measured && *measured <= budget_;
}

}  // namespace softneuro
