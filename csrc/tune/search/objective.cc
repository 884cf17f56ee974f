#include "tune/search/objective.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace softneuro {
namespace {

constexpr double growth = 16;  // of a price that is too low

// Each group that a plan takes, once.
std::set<int> groups_of(const DprsResult& plan) {
  std::set<int> groups;
  for (const DprsChoice& choice : plan.choices) {
    if (choice.group >= 0) groups.insert(choice.group);
  }
  return groups;
}

// The sum of what `label(layer, label)` and `group(group)` say of a plan's choices.
template <typename Label, typename Group>
double sum_over(const DprsResult& plan, const Label& label, const Group& group) {
  double sum = 0;
  for (size_t l = 0; l < plan.choices.size(); ++l) {
    if (plan.choices[l].label >= 0) sum += label(l, static_cast<size_t>(plan.choices[l].label));
  }
  for (const int g : groups_of(plan)) sum += group(static_cast<size_t>(g));
  return sum;
}

double at_adapt(const std::vector<std::vector<double>>& table, int schemas, const DprsAdapt& adapt) {
  const std::vector<double>& own = table[static_cast<size_t>(adapt.blob)];
  return own.empty() ? 0 : own[static_cast<size_t>(adapt.from * schemas + adapt.to)];
}

}  // namespace

double Measure::of(const DprsResult& plan) const {
  double sum = sum_over(
      plan, [&](size_t layer, size_t label) { return labels[layer][label]; }, [&](size_t g) { return groups[g]; });
  if (adapts.empty()) return sum;
  for (const DprsAdapt& adapt : plan.adapts) sum += at_adapt(adapts, schemas, adapt);
  return sum;
}

double plan_cost(const DprsProblem& problem, const DprsResult& plan) {
  double adapts = 0;
  for (const DprsAdapt& adapt : plan.adapts) adapts += at_adapt(problem.adapts, problem.schemas, adapt);
  return adapts + sum_over(
                      plan, [&](size_t layer, size_t label) { return problem.layers[layer].labels[label].cost; },
                      [&](size_t g) { return problem.groups[g].cost; });
}

size_t Objective::add(Measure measure, Pricing pricing, double price) {
  measures_.push_back({std::move(measure), pricing, price});
  return measures_.size() - 1;
}

double& Objective::seconds(size_t layer, const DprsChoice& choice) {
  if (choice.group >= 0) return problem_.groups[static_cast<size_t>(choice.group)].cost;
  return problem_.layers[layer].labels[static_cast<size_t>(choice.label)].cost;
}

DprsProblem Objective::priced() const {
  DprsProblem problem = problem_;
  for (const Priced& priced : measures_) {
    if (priced.price == 0) continue;
    for (size_t l = 0; l < problem.layers.size(); ++l) {
      auto& labels = problem.layers[l].labels;
      for (size_t i = 0; i < labels.size(); ++i) labels[i].cost += priced.price * priced.measure.labels[l][i];
    }
    for (size_t g = 0; g < problem.groups.size(); ++g) {
      problem.groups[g].cost += priced.price * priced.measure.groups[g];
    }
    for (size_t b = 0; b < priced.measure.adapts.size(); ++b) {
      for (size_t i = 0; i < priced.measure.adapts[b].size(); ++i) {
        problem.adapts[b][i] += priced.price * priced.measure.adapts[b][i];
      }
    }
  }
  return problem;
}

double Objective::prices(const DprsResult& plan) const {
  double sum = 0;
  for (const Priced& priced : measures_) sum += priced.price * priced.measure.of(plan);
  return sum;
}

double Objective::worth(const DprsResult& plan) const {
  double sum = 0;
  for (const Priced& priced : measures_) {
    if (priced.pricing == Pricing::worth) sum += priced.price * priced.measure.of(plan);
  }
  return sum;
}

BoundedPlan solve_within_bound(Objective& objective, size_t measure, double bound, const DprsResult& over,
                               const PriceRange& range) {
  BoundedPlan found;
  found.lower_bound = over.lower_bound - objective.price(measure) * bound;
  const auto solve = [&](double price) {
    objective.set_price(measure, price);
    DprsResult plan = dprs_solve(objective.priced());
    // A plan within the bound costs what it is priced at, less the price of what it has, which is of the bound at most.
    found.lower_bound = std::max(found.lower_bound, plan.lower_bound - price * bound);
    return plan;
  };
  const auto fits = [&](const DprsResult& plan) { return objective.measure(measure).of(plan) <= bound; };
  double low = 0, high = std::min(range.highest, std::max(over.cost, 1e-9) / std::max(bound, 1e-30));
  found.plan = solve(high);
  while (!fits(found.plan)) {
    if (high >= range.highest) {
      found.within = false;
      return found;
    }
    low = high;
    high = std::min(range.highest, growth * high);
    found.plan = solve(high);
  }
  if (low == 0) low = high / range.depth;
  while (high > range.precision * low) {
    const double middle = std::sqrt(low * high);
    DprsResult plan = solve(middle);
    if (fits(plan)) {
      high = middle;
      found.plan = std::move(plan);
    } else {
      low = middle;
    }
  }
  objective.set_price(measure, high);
  return found;
}

}  // namespace softneuro
