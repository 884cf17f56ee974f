#include "tune/search/memory_limit.h"

#include <algorithm>
#include <cmath>

#include "tune/search/dprs_labels.h"

namespace softneuro {
namespace {

// A second per byte at most. Prices within a thousandth make no difference.
constexpr PriceRange limit_prices{.highest = 1, .depth = 1 << 24, .precision = 1.001};
constexpr int price_steps = 24;  // of a bisection
// No process would miss so many bytes of packed weights: a few per cent of what PyTorch itself takes.
constexpr double free_bytes = 16 << 20;

struct Totals {
  double seconds = 0, bytes = 0;
};
// Sums over all layers, with the labels that are best at a price of bytes, conversions aside.
Totals at_price(const DprsProblem& problem, const Measure& bytes, double price) {
  Totals total;
  for (size_t l = 0; l < problem.layers.size(); ++l) {
    double least = INFINITY;
    Totals best;
    for (size_t i = 0; i < problem.layers[l].labels.size(); ++i) {
      const Totals own{problem.layers[l].labels[i].cost, bytes.labels[l][i]};
      const double priced = own.seconds + price * own.bytes;
      if (priced < least) least = priced, best = own;
    }
    total.seconds += best.seconds, total.bytes += best.bytes;
  }
  return total;
}

// Spends what a plan leaves of the limit on faster labels of the same schemas: those change nothing else in it. Many
// equal layers have equal prices, so that the relaxation gives the larger packing to all of them or to none.
void fill_up(const DprsProblem& problem, const Measure& bytes, double limit, DprsResult& plan) {
  double left = limit - bytes.of(plan);
  while (true) {
    double best_rate = 0;
    size_t best_layer = 0;
    int best_label = -1;
    for (size_t l = 0; l < plan.choices.size(); ++l) {
      const int now = plan.choices[l].label;
      if (now < 0) continue;
      const auto& labels = problem.layers[l].labels;
      const DprsLabel& current = labels[static_cast<size_t>(now)];
      for (size_t i = 0; i < labels.size(); ++i) {
        const double more = bytes.labels[l][i] - bytes.labels[l][static_cast<size_t>(now)];
        const double gain = current.cost - labels[i].cost;
        if (gain <= 0 || more > left || labels[i].in != current.in || labels[i].out != current.out) continue;
        const double rate = gain / std::max(more, 1.0);
        if (rate <= best_rate) continue;
        best_rate = rate;
        best_layer = l;
        best_label = static_cast<int>(i);
      }
    }
    if (best_label < 0) return;
    int& label = plan.choices[best_layer].label;
    const auto from = static_cast<size_t>(label), to = static_cast<size_t>(best_label);
    plan.cost -= problem.layers[best_layer].labels[from].cost - problem.layers[best_layer].labels[to].cost;
    left -= bytes.labels[best_layer][to] - bytes.labels[best_layer][from];
    label = best_label;
  }
}

}  // namespace

Measure weighed(Measure bytes) {
  const auto layers = static_cast<double>(bytes.labels.size());
  for (size_t l = 0; l < bytes.labels.size(); ++l) {
    for (double& label : bytes.labels[l]) label *= 1 + 0.01 * static_cast<double>(l) / layers;
  }
  return bytes;
}

double memory_price(const DprsProblem& problem, const Measure& bytes, double model_bytes) {
  constexpr double share = 0.15, small = 0.6, slight = 0.01, bearable = 0.03;
  const Totals best = at_price(problem, bytes, 0);
  if (best.bytes <= free_bytes) return 0;
  const double fastest = best.seconds, small_bytes = small * model_bytes;
  const auto goes_on = [&](double price) {
    const Totals total = at_price(problem, bytes, price);
    return total.seconds <= (1 + (total.bytes > small_bytes ? bearable : slight)) * fastest;
  };
  double low = 0, high = share * fastest / std::max(model_bytes, 1.0);
  if (goes_on(high)) return high;
  for (int step = 0; step < price_steps; ++step) {
    const double middle = 0.5 * (low + high);
    (goes_on(middle) ? low : high) = middle;
  }
  // The last step may be the one to what is small, and bearable.
  const Totals before = at_price(problem, bytes, low), after = at_price(problem, bytes, high);
  return before.bytes > small_bytes && after.seconds <= (1 + bearable) * fastest ? high : low;
}

LimitedPlans solve_within(const Objective& objective, const Measure& bytes, double limit, int k) {
  const DprsProblem problem = objective.priced();
  const DprsResult best = dprs_solve(problem);
  const auto fits = [&](const DprsResult& plan) { return bytes.of(plan) <= limit; };
  LimitedPlans found;
  found.regrets = best.regrets;
  if (fits(best)) {
    found.plans = k > 1 ? dprs_k_best(problem, best, k) : std::vector<DprsResult>{best};
    // The best stays first; of the others only those within the limit.
    std::erase_if(found.plans, [&](const DprsResult& plan) { return !fits(plan); });
    return found;
  }
  found.limited = true;
  Objective limited = objective;
  BoundedPlan within = solve_within_bound(limited, limited.add(bytes, Pricing::bound), limit, best, limit_prices);
  found.fits = within.within;
  found.regrets = within.plan.regrets;
  if (!found.fits) {
    within.plan.cost = within.plan.lower_bound = plan_cost(problem, within.plan);
    found.plans.push_back(std::move(within.plan));
    return found;
  }
  std::vector<DprsResult> plans{within.plan};
  if (k > 1) plans = dprs_k_best(limited.priced(), within.plan, k);
  std::erase_if(plans, [&](const DprsResult& plan) { return !fits(plan); });
  WithinBounds nearest = dprs_within(problem, {{bytes, limit}});
  if (nearest.plan) plans.push_back(std::move(*nearest.plan));
  within.lower_bound = std::max(within.lower_bound, nearest.lower_bound);
  for (DprsResult& plan : plans) {
    plan.cost = plan_cost(problem, plan);
    fill_up(problem, bytes, limit, plan);
    plan.lower_bound = std::min(within.lower_bound, plan.cost);
    plan.exact = plan.cost - plan.lower_bound <= 1e-9 * plan.cost;
  }
  // Filled up, some may have become one and the same.
  std::stable_sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
  for (DprsResult& plan : plans) {
    const bool known = std::any_of(found.plans.begin(), found.plans.end(),
                                   [&](const DprsResult& other) { return other.choices == plan.choices; });
    if (!known && found.plans.size() < static_cast<size_t>(std::max(k, 1))) found.plans.push_back(std::move(plan));
  }
  return found;
}

}  // namespace softneuro
