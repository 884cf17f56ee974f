#include "tune/search/in_budget.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "tune/search/dprs_labels.h"

namespace softneuro {
namespace {

// Plans around a price, where nothing better is known of those that no price finds.
constexpr int most_between = 12;

std::string found_text(const WithinBounds& found) {
  char text[200];
  const LabelStats& stats = found.stats;
  std::snprintf(text, sizeof(text),
                "tune: within the budget %.4f ms, at best %.4f ms; by prices alone %.4f and %.4f (%d prices, %d "
                "searches, %zu labels)",
                1e3 * (found.plan ? found.plan->cost : INFINITY), 1e3 * found.lower_bound, 1e3 * stats.priced_cost,
                1e3 * stats.priced_bound, stats.prices, stats.searches, stats.labels);
  return text;
}

}  // namespace

WithinBounds solve_in_budget(const Objective& objective, const Accuracy& accuracy, PeakLimit& memory) {
  std::vector<Bound> bounds{accuracy.foretold_bound()};
  if (auto bytes = memory.packed_bound()) bounds.push_back(std::move(*bytes));
  WithinBounds found = dprs_within(accuracy.unpriced(objective).priced(), bounds);
  if (found.plan && !memory.fits(*found.plan)) found.plan.reset();
  return found;
}

LimitedPlans plans_in_budget(const Objective& objective, Accuracy& accuracy, PeakLimit& memory, int k,
                             const std::function<bool(const DprsResult&)>& acceptable) {
  WithinBounds best = solve_in_budget(objective, accuracy, memory);
  log_info(found_text(best));
  const bool near = best.plan && acceptable(*best.plan);
  const int several = near ? k : std::max(k, most_between);
  LimitedPlans found = memory.solve(objective, several);
  if (near) {
    if (!found.fits) found.plans.clear();
    found.fits = true;
    found.plans.insert(found.plans.begin(), std::move(*best.plan));
    found.proven = best.lower_bound;
    return found;
  }
  // The price of memory may have moved the plan over the limit of errors, which comes first.
  while (!acceptable(found.plans.front())) {
    const auto good = std::find_if(found.plans.begin(), found.plans.end(), acceptable);
    if (good != found.plans.end()) {
      found.plans.erase(found.plans.begin(), good);
    } else if (accuracy.raise_price(found.plans.front())) {
      found = memory.solve(objective, several);
    } else {
      found.plans = {dprs_solve(objective.priced())};
      found.regrets = found.plans.front().regrets;
      found.fits = false;
      log_warning("tune: no plan keeps to max_memory and to max_error at once: max_memory gives way");
      break;
    }
  }
  return found;
}

}  // namespace softneuro
