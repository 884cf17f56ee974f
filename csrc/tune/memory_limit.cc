#include "tune/memory_limit.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace softneuro {
namespace {

constexpr int price_steps = 24;  // of a bisection
// Of packed weights that no process would miss: a few per cent of what PyTorch itself takes.
constexpr double free_bytes = 16 << 20;

struct Totals {
  double seconds = 0, bytes = 0;
};
// Of all layers with the labels that are best at a price of bytes, conversions aside.
Totals at_price(const DprsProblem& problem, const PlanBytes& bytes, double price) {
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

class Search {
 public:
  Search(const DprsProblem& problem, const PlanBytes& bytes, double limit)
      : problem_(problem), bytes_(bytes), limit_(limit), priced_(problem) {}

  // DPRS where each byte costs `price` seconds more.
  DprsResult solve(double price) {
    set_price(price);
    DprsResult result = dprs_solve(priced_);
    // Of any plan within the limit: what it costs, plus what it has left of the limit, is at least the priced bound.
    bound_ = std::max(bound_, result.lower_bound - price * limit_);
    return result;
  }
  std::vector<DprsResult> k_best(double price, const DprsResult& best, int k) {
    set_price(price);
    return dprs_k_best(priced_, best, k);
  }
  bool fits(const DprsResult& plan) const { return plan_bytes(bytes_, plan) <= limit_; }
  double bound() const { return bound_; }

  // The price taken off again.
  void in_seconds(DprsResult& plan) const {
    plan.cost = 0;
    for (const DprsAdapt& adapt : plan.adapts) plan.cost += adapt.cost;
    for (size_t l = 0; l < plan.choices.size(); ++l) {
      const DprsChoice& choice = plan.choices[l];
      if (choice.label >= 0) plan.cost += problem_.layers[l].labels[static_cast<size_t>(choice.label)].cost;
    }
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      const bool taken = std::any_of(plan.choices.begin(), plan.choices.end(),
                                     [&](const DprsChoice& choice) { return choice.group == static_cast<int>(g); });
      if (taken) plan.cost += problem_.groups[g].cost;
    }
  }

  // Spends what is left of the limit on faster labels of the same schemas: those change nothing else in the plan. Many
  // equal layers have equal prices, so that the relaxation gives the larger packing to all of them or to none.
  void fill_up(DprsResult& plan) const {
    double left = limit_ - plan_bytes(bytes_, plan);
    while (true) {
      double best_rate = 0;
      size_t best_layer = 0;
      int best_label = -1;
      for (size_t l = 0; l < plan.choices.size(); ++l) {
        const int now = plan.choices[l].label;
        if (now < 0) continue;
        const auto& labels = problem_.layers[l].labels;
        const DprsLabel& current = labels[static_cast<size_t>(now)];
        for (size_t i = 0; i < labels.size(); ++i) {
          const double more = bytes_.labels[l][i] - bytes_.labels[l][static_cast<size_t>(now)];
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
      plan.cost -= problem_.layers[best_layer].labels[from].cost - problem_.layers[best_layer].labels[to].cost;
      left -= bytes_.labels[best_layer][to] - bytes_.labels[best_layer][from];
      label = best_label;
    }
  }

 private:
  void set_price(double price) { priced_ = with_byte_price(problem_, bytes_, price); }

  const DprsProblem& problem_;
  const PlanBytes& bytes_;
  const double limit_;
  DprsProblem priced_;
  double bound_ = 0;
};

}  // namespace

double plan_bytes(const PlanBytes& bytes, const DprsResult& plan) {
  double total = 0;
  std::set<int> groups;
  for (size_t l = 0; l < plan.choices.size(); ++l) {
    const DprsChoice& choice = plan.choices[l];
    if (choice.label >= 0) total += bytes.labels[l][static_cast<size_t>(choice.label)];
    if (choice.group >= 0) groups.insert(choice.group);
  }
  for (const int group : groups) total += bytes.groups[static_cast<size_t>(group)];
  return total;
}

PlanBytes weighed(PlanBytes bytes) {
  const auto layers = static_cast<double>(bytes.labels.size());
  for (size_t l = 0; l < bytes.labels.size(); ++l) {
    for (double& label : bytes.labels[l]) label *= 1 + 0.01 * static_cast<double>(l) / layers;
  }
  return bytes;
}

double memory_price(const DprsProblem& problem, const PlanBytes& bytes, double model_bytes) {
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

DprsProblem with_byte_price(DprsProblem problem, const PlanBytes& bytes, double price) {
  for (size_t l = 0; l < problem.layers.size(); ++l) {
    for (size_t i = 0; i < problem.layers[l].labels.size(); ++i) {
      problem.layers[l].labels[i].cost += price * bytes.labels[l][i];
    }
  }
  for (size_t g = 0; g < problem.groups.size(); ++g) problem.groups[g].cost += price * bytes.groups[g];
  return problem;
}

LimitedPlans solve_within(const DprsProblem& problem, const PlanBytes& bytes, double limit, int k) {
  Search search(problem, bytes, limit);
  LimitedPlans found;
  const DprsResult best = search.solve(0);
  found.regrets = best.regrets;
  if (search.fits(best)) {
    found.plans = k > 1 ? search.k_best(0, best, k) : std::vector<DprsResult>{best};
    // The best stays first; of the others only those within the limit.
    std::erase_if(found.plans, [&](const DprsResult& plan) { return !search.fits(plan); });
    return found;
  }
  found.limited = true;
  constexpr double dear = 1;  // a second per byte: nothing but bytes counts
  DprsResult within = search.solve(dear);
  if (!search.fits(within)) {
    found.fits = false;
    found.regrets = within.regrets;
    search.in_seconds(within);
    within.lower_bound = within.cost;
    found.plans.push_back(std::move(within));
    return found;
  }
  // From a price at which the whole limit is worth as much as the plan, upwards to one at which the plan fits.
  double low = 0, high = std::min(dear, (best.cost + 1e-9) / std::max(limit, 1.0));
  within = search.solve(high);
  while (!search.fits(within)) {
    low = high;
    high = std::min(dear, 8 * high);
    within = search.solve(high);
  }
  for (int step = 0; step < price_steps && high - low > 1e-3 * high; ++step) {
    const double middle = 0.5 * (low + high);
    DprsResult next = search.solve(middle);
    if (search.fits(next)) {
      high = middle;
      within = std::move(next);
    } else {
      low = middle;
    }
  }
  found.regrets = within.regrets;
  std::vector<DprsResult> plans{within};
  if (k > 1) plans = search.k_best(high, within, k);
  std::erase_if(plans, [&](const DprsResult& plan) { return !search.fits(plan); });
  for (DprsResult& plan : plans) {
    search.in_seconds(plan);
    search.fill_up(plan);
    plan.lower_bound = std::min(search.bound(), plan.cost);
    plan.exact = plan.cost - plan.lower_bound <= 1e-9 * plan.cost;
  }
  // Filled up, some may have become one and the same.
  std::stable_sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
  for (DprsResult& plan : plans) {
    const bool known = std::any_of(found.plans.begin(), found.plans.end(),
                                   [&](const DprsResult& other) { return other.choices == plan.choices; });
    if (!known) found.plans.push_back(std::move(plan));
  }
  return found;
}

}  // namespace softneuro
