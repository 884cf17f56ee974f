#include "tune/search/dprs.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "base/error.h"
#include "tune/search/dprs_model.h"

namespace softneuro {
namespace dprs {

void Model::expand_marginals(const std::vector<std::vector<double>>& marginals, DprsResult& result) const {
  result.group_marginals.assign(problem_.groups.size(), infinity);
  using Slots = std::pair<std::vector<int>, std::vector<int>>;
  for (int i = 0; i < layers(); ++i) {
    std::map<Slots, size_t> own;  // signature -> option
    for (size_t x = 0; x < options(i).size(); ++x) {
      const Option& option = options(i)[x];
      const double least = std::max(marginals[static_cast<size_t>(i)][x], result.cost);
      if (option.choice.group < 0) {
        own[{option.in, option.out}] = x;
      } else {
        result.group_marginals[static_cast<size_t>(option.choice.group)] = least;
      }
    }
    auto& spread = result.label_marginals.emplace_back();
    for (const DprsLabel& label : problem_.layers[static_cast<size_t>(i)].labels) {
      auto it = own.find({label.in, label.out});
      if (it == own.end()) {
        spread.push_back(infinity);
        continue;
      }
      const double extra = label.cost - options(i)[it->second].cost;
      spread.push_back(std::max(marginals[static_cast<size_t>(i)][it->second], result.cost) + extra);
    }
  }
  // Groups that lost to one that looks the same take its marginal plus the difference in cost.
  for (size_t g = 0; g < twins_.size(); ++g) {
    if (twins_[g] < 0 || twins_[g] == static_cast<int>(g)) continue;
    const size_t twin = static_cast<size_t>(twins_[g]);
    result.group_marginals[g] = result.group_marginals[twin] + problem_.groups[g].cost - problem_.groups[twin].cost;
  }
  result.regrets.assign(static_cast<size_t>(layers()), infinity);
  auto consider = [&](int layer, const DprsChoice& choice, double marginal) {
    double& regret = result.regrets[static_cast<size_t>(layer)];
    if (result.choices[static_cast<size_t>(layer)] != choice) regret = std::min(regret, marginal - result.cost);
  };
  for (int i = 0; i < layers(); ++i) {
    const auto& spread = result.label_marginals[static_cast<size_t>(i)];
    for (size_t k = 0; k < spread.size(); ++k) consider(i, {static_cast<int>(k), -1}, spread[k]);
  }
  for (size_t g = 0; g < problem_.groups.size(); ++g) {
    for (const DprsCover& cover : problem_.groups[g].covers) {
      consider(cover.layer, {-1, static_cast<int>(g)}, result.group_marginals[g]);
    }
  }
}

static DprsResult solve(const DprsProblem& problem, const DprsLimits& limits, bool with_marginals) {
  const Model model(problem);
  const FactorGraph& graph = model.graph();
  const Order order = choose_order(graph);
  DprsResult result;
  result.stats.variables = static_cast<int>(graph.domains.size());
  result.stats.largest_table = order.largest;
  result.stats.table_entries = order.total;
  Assignment values;
  double found = infinity;
  std::vector<std::vector<double>> marginals;
  if (order.largest <= static_cast<double>(limits.max_table) &&
      order.total <= static_cast<double>(limits.max_entries)) {
    Exact exact = eliminate(graph, order, with_marginals ? model.layers() : 0);
    values = std::move(exact.values);
    marginals = std::move(exact.marginals);
    result.exact = true;
    found = exact.cost;
  } else {
    Bounded bounded = branch_and_bound(graph, order, limits, model.starts(),
                                       [&](Assignment& candidate) { return model.polish(candidate); });
    values = std::move(bounded.values);
    found = bounded.cost;
    result.lower_bound = bounded.lower_bound;
    result.exact = bounded.complete;
    result.stats.nodes = bounded.nodes;
  }
  if (found == infinity) {
    throw Error(result.exact ? "no combination of candidates fits together" : "found no plan within the limits", "dprs",
                result.exact ? "some conversion between schemas is missing" : "raise the limits");
  }
  result.cost = model.evaluate(values);
  if (result.exact) result.lower_bound = result.cost;
  result.choices = model.choices(values);
  result.adapts = model.adapts(values);
  if (!with_marginals) return result;
  for (int i = static_cast<int>(marginals.size()); i < model.layers(); ++i) {
    auto& flips = marginals.emplace_back();
    Assignment flipped = values;
    for (size_t x = 0; x < model.options(i).size(); ++x) {
      flipped[static_cast<size_t>(i)] = static_cast<int>(x);
      flips.push_back(model.evaluate(flipped));
    }
  }
  model.expand_marginals(marginals, result);
  return result;
}

// The problem with one label or group as the only way for the layers it computes.
static DprsProblem force(DprsProblem problem, int layer, const DprsChoice& choice) {
  std::vector<int> layers{layer};
  if (choice.group >= 0) {
    layers.clear();
    for (const DprsCover& cover : problem.groups[static_cast<size_t>(choice.group)].covers) {
      layers.push_back(cover.layer);
    }
  }
  for (int i : layers) {
    auto& labels = problem.layers[static_cast<size_t>(i)].labels;
    for (size_t k = 0; k < labels.size(); ++k) {
      if (static_cast<int>(k) != choice.label) labels[k].cost = infinity;
    }
  }
  for (size_t g = 0; g < problem.groups.size(); ++g) {
    const auto& covers = problem.groups[g].covers;
    if (static_cast<int>(g) != choice.group && std::any_of(covers.begin(), covers.end(), [&](const DprsCover& cover) {
          return std::find(layers.begin(), layers.end(), cover.layer) != layers.end();
        })) {
      problem.groups[g].cost = infinity;
    }
  }
  return problem;
}

}  // namespace dprs

DprsResult dprs_solve(const DprsProblem& problem, const DprsLimits& limits) {
  return dprs::solve(problem, limits, true);
}

std::vector<DprsResult> dprs_k_best(const DprsProblem& problem, const DprsResult& best, int k,
                                    const DprsLimits& limits) {
  if (k < 1) throw Error("the number of plans must be at least 1, not " + std::to_string(k), "dprs");
  std::vector<std::tuple<double, int, int, int>> alternatives;  // marginal, layer, label, group
  for (size_t i = 0; i < best.choices.size(); ++i) {
    for (size_t label = 0; label < best.label_marginals[i].size(); ++label) {
      const double marginal = best.label_marginals[i][label];
      if (marginal == dprs::infinity || best.choices[i].label == static_cast<int>(label)) continue;
      alternatives.emplace_back(marginal, static_cast<int>(i), static_cast<int>(label), -1);
    }
  }
  for (size_t g = 0; g < best.group_marginals.size(); ++g) {
    const int layer = problem.groups[g].covers[0].layer;
    const bool chosen = best.choices[static_cast<size_t>(layer)].group == static_cast<int>(g);
    if (best.group_marginals[g] == dprs::infinity || chosen) continue;
    alternatives.emplace_back(best.group_marginals[g], layer, -1, static_cast<int>(g));
  }
  std::sort(alternatives.begin(), alternatives.end());
  // One plan often holds several alternatives; a few misses for each hit bound the work.
  std::vector<DprsResult> plans{best};
  int tries = 4 * k;
  for (const auto& [marginal, layer, label, group] : alternatives) {
    if (static_cast<int>(plans.size()) >= k || tries-- == 0) break;
    const bool seen = std::any_of(plans.begin(), plans.end(),
                                  [&, layer = layer, label = label, group = group](const DprsResult& plan) {
                                    return plan.choices[static_cast<size_t>(layer)] == DprsChoice{label, group};
                                  });
    if (seen) continue;
    plans.push_back(dprs::solve(dprs::force(problem, layer, {label, group}), limits, false));
  }
  std::stable_sort(plans.begin(), plans.end(),
                   [](const DprsResult& a, const DprsResult& b) { return a.cost < b.cost; });
  return plans;
}

}  // namespace softneuro
