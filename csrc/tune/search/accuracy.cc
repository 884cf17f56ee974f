#include "tune/search/accuracy.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "tune/measure/trial.h"
#include "tune/plan/plan_error.h"
#include "tune/records/cost_keys.h"
#include "tune/search/measures.h"
#include "tune/search/solution.h"

namespace softneuro {
namespace {

constexpr int attempts = 4;
constexpr double least_sections = 4, most_sections = 16;
constexpr double sections_share = 0.12;  // of the time that tuning may take
constexpr double small_noise = 0.06;     // of max_error's square
// Within a quarter, as errors do not add up that closely, by prices of which the highest leaves no errors.
constexpr PriceRange noise_prices{.highest = 1e30, .depth = 4096, .precision = 1.25};
// Of what a calibration has measured one by one.
constexpr PriceRange foretold_prices{.highest = 1e30, .depth = 65536, .precision = 1.02};

// Squares of expected errors become those of the outputs' errors.
void magnify(const GraphCosts& costs, const std::vector<double>& factors, Measure& noise) {
  for (size_t l = 0; l < factors.size(); ++l) {
    for (double& label : noise.labels[l]) label *= factors[l] * factors[l];
  }
  for (size_t g = 0; g < costs.fused.size(); ++g) {
    const double factor = factors[static_cast<size_t>(costs.fused[g].fusion->layers.back())];
    noise.groups[g] *= factor * factor;
  }
}

}  // namespace

Accuracy::Accuracy(const Graph& graph, const GraphCosts& costs, Objective& objective, const Trials& trials)
    : graph_(graph),
      costs_(costs),
      objective_(objective),
      trials_(trials),
      noise_(objective.add(squared_errors(graph, costs, trials.settings.calibration.get()), Pricing::bound)),
      unproven_(unproven_errors(graph, costs)),
      ledger_(trials.db, trials.settings.threads),
      budget_(random_share * trials.settings.limits.max_error) {}

// The best plan of layers that are exact but for these.
DprsResult Accuracy::solve_exact(size_t begin, size_t end) const {
  Objective exact = objective_;
  exact.add(measure_candidates(graph_, costs_,
                               [&](const Candidate& candidate, int layer) {
                                 const auto l = static_cast<size_t>(layer);
                                 return candidate.error > 0 && !(l >= begin && l < end) ? 1.0 : 0.0;
                               }),
            Pricing::bound, forbidden);
  return dprs_solve(exact.priced());
}

// Against the plan of exact routines; nothing where it is not known and not to be measured.
std::optional<double> Accuracy::error(const DprsResult& plan) {
  if (trials_.settings.mode == TuneMode::off) return {};
  const Assignment assignment = to_assignment(graph_, costs_, plan);
  const std::string& signature = signature_of_errors();
  const Subject subject(assignment);
  const double budget = trials_.settings.time_budget_s;
  if (const auto known = ledger_.find_error(signature, subject)) return known;
  if (!trials_.may_measure() || ledger_.was_too_much(signature, subject, budget)) return {};
  if (trials_.timekeeper.left() < 0) {  // nor is there for a later run that has no more time
    ledger_.add_too_much(signature, subject, budget);
    return {};
  }
  if (expected_.empty()) {
    expected_ = outputs_of(graph_, to_assignment(graph_, costs_, solve_exact(0, 0)), trials_);
  }
  const double start = trials_.timekeeper.now();
  const double error = worst_error(outputs_of(graph_, assignment, trials_), expected_);
  trial_seconds_ = trials_.timekeeper.now() - start;
  ledger_.add_error(signature, subject, error);
  return error;
}

// Sections that there is time for, by what the plan's own trial took; later runs take as many.
size_t Accuracy::most_for(const DprsResult& plan) {
  const std::string signature = "sections of graph " + graph_.structural_hash();
  const Subject subject(to_assignment(graph_, costs_, plan));
  if (const auto known = ledger_.find_sections(signature, subject)) return static_cast<size_t>(*known);
  const double time = sections_share * trials_.settings.time_budget_s;
  const double most = std::floor(std::clamp(time / std::max(trial_seconds_, 1e-6), least_sections, most_sections));
  if (trials_.may_measure()) ledger_.add_sections(signature, subject, static_cast<int>(most));
  return static_cast<size_t>(most);
}

// By layer, what the network makes of its error: the outputs' over the expected one. The plan's inexact layers are
// taken in sections, one after the other in a plan that is exact elsewhere. `usual` where that says nothing or time
// is up.
std::vector<double> Accuracy::magnifications(const DprsResult& plan, double usual) {
  std::vector<size_t> inexact;
  for (size_t l = 0; l < costs_.layers.size(); ++l) {
    const Candidate* candidate = chosen_candidate(costs_, plan, l);
    if (candidate == nullptr || candidate->error == 0) continue;
    const int group = plan.choices[l].group;  // begins with its first layer, which may be computed without it, too
    const auto first = group < 0 ? l : static_cast<size_t>(costs_.fused[static_cast<size_t>(group)].fusion->layers[0]);
    inexact.push_back(inexact.empty() ? first : std::max(first, inexact.back()));
  }
  std::vector<double> result(costs_.layers.size(), usual);
  const size_t sections = std::min(inexact.size(), most_for(plan));
  for (size_t i = 0; i < sections; ++i) {
    const size_t begin = i > 0 ? inexact[i * inexact.size() / sections] : 0;
    const size_t end = i + 1 < sections ? inexact[(i + 1) * inexact.size() / sections] : result.size();
    const DprsResult part = solve_exact(begin, end);
    const double noise = noise_of(part), measured = noise > 0 ? error(part).value_or(0) : 0;
    if (measured > 0) std::fill(result.data() + begin, result.data() + end, measured / std::sqrt(noise));
  }
  return result;
}

// Nothing is run: random inputs say nothing of ranges that were found on real ones.
void Accuracy::find_foretold_price() {
  const double allowed = std::pow(trials_.settings.limits.max_error, 2);
  const DprsResult best = dprs_solve(objective_.priced());
  if (noise_of(best) > allowed) solve_within_bound(objective_, noise_, allowed, best, foretold_prices);
  proven_noise_ = allowed;
}

bool Accuracy::raise_price(const DprsResult& plan) {
  const double price = objective_.price(noise_), allowed = std::pow(trials_.settings.limits.max_error, 2);
  const double next = std::max(8 * price, 0.01 * std::max(plan.cost, 1e-9) / allowed);
  if (next >= foretold_prices.highest) return false;
  objective_.set_price(noise_, next);
  return true;
}

double Accuracy::foretold(const DprsResult& plan) const {
  return costs_.grids != nullptr ? std::sqrt(noise_of(plan)) : 0;
}

Bound Accuracy::foretold_bound() const {
  return {objective_.measure(noise_), std::pow(trials_.settings.limits.max_error, 2)};
}

Objective Accuracy::unpriced(Objective objective) const {
  objective.set_price(noise_, 0);
  return objective;
}

void Accuracy::find_price() {
  if (costs_.grids != nullptr) return find_foretold_price();
  DprsResult best = dprs_solve(objective_.priced());
  double noise = noise_of(best);
  for (int attempt = 0; noise > 0; ++attempt) {
    const auto measured = error(best);
    if (!measured && attempt == 0) {
      log_info("tune: nobody has measured what errors do on these weights: exact routines alone");
      objective_.add(unproven_, Pricing::bound, forbidden);
      if (unproven_.of(best) > 0) noise = noise_of(dprs_solve(objective_.priced()));
    }
    if (!measured || *measured <= budget_) break;
    if (attempt == 0) {
      magnify(costs_, magnifications(best, *measured / std::sqrt(noise)), objective_.measure(noise_));
      noise = noise_of(best);
    }
    // As if errors added up like those of independent sums; where that is wrong, the next measurement says so.
    const double allowed = attempt < attempts ? 0.7 * noise * std::pow(budget_ / *measured, 2) : 1e-30;
    log_info("tune: the plan's error of " + std::to_string(*measured) + " is above half of max_error, choosing again");
    best = solve_within_bound(objective_, noise_, allowed, best, noise_prices).plan;
    noise = noise_of(best);
  }
  // With twice its noise a plan's error is within the budget, too, unless the budget decided.
  proven_noise_ = objective_.price(noise_) > 0 ? noise : 2 * noise;
}

std::vector<ProvenError> Accuracy::proven(const DprsResult& plan) {
  if (costs_.grids != nullptr) return {{graph_.weights_identity(), foretold(plan)}};
  if (noise_of(plan) == 0) return {};
  const auto measured = ledger_.find_error(signature_of_errors(), to_assignment(graph_, costs_, plan));
  return {{graph_.weights_identity(), measured.value_or(budget_)}};
}

// Hashed once, and only where there are errors.
const std::string& Accuracy::signature_of_errors() {
  if (signature_.empty()) signature_ = error_signature(graph_);
  return signature_;
}

bool Accuracy::holds(const DprsResult& plan) {
  const double noise = noise_of(plan);
  if (noise <= proven_noise_) return true;
  if (costs_.grids != nullptr) return false;
  // A best plan of exact routines says nothing of what the network does to errors; the doors compare with the host.
  const double small = small_noise * std::pow(trials_.settings.limits.max_error, 2);
  if (objective_.price(noise_) == 0 && noise <= small && unproven_.of(plan) == 0) return true;
  const auto measured = error(plan);
  return measured && *measured <= budget_;
}

}  // namespace softneuro
