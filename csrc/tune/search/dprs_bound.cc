// Where exact elimination would need tables too large: mini-bucket lower bounds guide a depth-first branch and bound.
#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>

#include "tune/search/dprs_factors.h"

namespace softneuro::dprs {
namespace {

struct SearchBucket {
  std::vector<const Factor*> factors;   // original ones and messages, all over variables eliminated here or later
  std::vector<const Factor*> messages;  // that this bucket sent
};

class Search {
 public:
  Search(const FactorGraph& graph, const Order& order, const DprsLimits& limits,
         const std::function<double(Assignment&)>& polish)
      : graph_(graph),
        order_(order),
        limits_(limits),
        polish_(polish),
        rank_(graph.domains.size()),
        buckets_(graph.domains.size()),
        values_(graph.domains.size(), 0),
        deadline_(std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(std::min(limits.time_limit_s, 1e6)))) {
    for (size_t i = 0; i < rank_.size(); ++i) rank_[static_cast<size_t>(order.variables[i])] = i;
    build();
  }

  Bounded run(const std::vector<Assignment>& starts) {
    result_.cost = infinity;
    for (const Assignment& start : starts) accept(start);
    result_.lower_bound = root_;
    result_.complete = root_ >= result_.cost || descend();
    if (result_.complete) result_.lower_bound = result_.cost;
    result_.lower_bound = std::min(result_.lower_bound, result_.cost);
    return std::move(result_);
  }

 private:
  void place(const Factor* factor) {
    if (factor->scope.empty()) {
      root_ += factor->table[0];
      return;
    }
    size_t first = rank_.size();
    for (int v : factor->scope) first = std::min(first, rank_[static_cast<size_t>(v)]);
    buckets_[first].factors.push_back(factor);
  }

  double entries(const std::vector<int>& scope) const {
    return std::accumulate(scope.begin(), scope.end(), 1.0,
                           [&](double product, int v) { return product * graph_.domains[static_cast<size_t>(v)]; });
  }

  // Each bucket is split into groups whose tables stay small: minimising them apart can only lower the result.
  void build() {
    root_ = graph_.constant;
    for (const Factor& factor : graph_.factors) place(&factor);
    for (size_t i = 0; i < buckets_.size(); ++i) {
      const int variable = order_.variables[i];
      std::vector<const Factor*> sorted = buckets_[i].factors;
      std::stable_sort(sorted.begin(), sorted.end(),
                       [](const Factor* a, const Factor* b) { return a->scope.size() > b->scope.size(); });
      std::vector<std::pair<std::vector<int>, std::vector<const Factor*>>> groups;
      for (const Factor* factor : sorted) {
        std::vector<int> scope = factor->scope;
        std::sort(scope.begin(), scope.end());
        bool placed = false;
        for (auto& [joint, members] : groups) {
          std::vector<int> merged;
          std::set_union(joint.begin(), joint.end(), scope.begin(), scope.end(), std::back_inserter(merged));
          if (entries(merged) > static_cast<double>(limits_.mini_table)) continue;
          joint = std::move(merged);
          members.push_back(factor);
          placed = true;
          break;
        }
        if (!placed) groups.push_back({std::move(scope), {factor}});
      }
      for (auto& [scope, members] : groups) {
        Table table(graph_, scope);
        for (const Factor* factor : members) table.add(*factor);
        std::erase(scope, variable);
        sent_.push_back(table.project(graph_, scope));
        buckets_[i].messages.push_back(&sent_.back());
        place(&sent_.back());
      }
    }
  }

  double sum(const std::vector<const Factor*>& factors) const {
    double total = 0;
    for (const Factor* factor : factors) total += factor->table[factor_index(graph_, *factor, values_)];
    return total;
  }

  struct Level {
    std::vector<std::pair<double, int>> options;  // bound and value, best first
    size_t next = 0;
  };

  // Assigns variables against the order of elimination. The bound of a partial assignment is exact on the assigned
  // part plus the messages of the rest. Returns true if everything was searched or bounded.
  bool descend() {
    const size_t count = buckets_.size();
    std::vector<Level> levels;
    double bound = root_;
    while (true) {
      if (levels.size() == count) {
        accept(values_);
      } else {
        levels.push_back(expand(count - 1 - levels.size(), bound));
      }
      // Step to the next open option, going up where there is none.
      while (!levels.empty()) {
        Level& level = levels.back();
        if (level.next < level.options.size() && level.options[level.next].first < result_.cost) break;
        levels.pop_back();
      }
      if (levels.empty()) return true;
      // Hard constraints can make first solutions rare, so none is given up before one is found, within reason.
      const int64_t allowed = result_.values.empty() ? 20 * limits_.max_nodes : limits_.max_nodes;
      if (++result_.nodes >= allowed || (result_.nodes % 256 == 0 && std::chrono::steady_clock::now() > deadline_)) {
        return false;
      }
      Level& level = levels.back();
      bound = level.options[level.next].first;
      values_[static_cast<size_t>(order_.variables[count - levels.size()])] = level.options[level.next].second;
      ++level.next;
    }
  }

  Level expand(size_t bucket, double bound) {
    Level level;
    const size_t variable = static_cast<size_t>(order_.variables[bucket]);
    const double sent = sum(buckets_[bucket].messages);
    for (int x = 0; x < graph_.domains[variable]; ++x) {
      values_[variable] = x;
      // Rounding must not push a child below its parent.
      double child = std::max(bound, bound - sent + sum(buckets_[bucket].factors));
      if (child < result_.cost) level.options.emplace_back(child, x);
    }
    std::sort(level.options.begin(), level.options.end());
    return level;
  }

  void accept(Assignment candidate) {
    double cost = polish_(candidate);
    if (cost < result_.cost) {
      result_.cost = cost;
      result_.values = std::move(candidate);
    }
  }

  const FactorGraph& graph_;
  const Order& order_;
  const DprsLimits& limits_;
  const std::function<double(Assignment&)>& polish_;
  std::vector<size_t> rank_;
  std::vector<SearchBucket> buckets_;
  std::deque<Factor> sent_;  // stable addresses
  double root_ = 0;
  Assignment values_;
  std::chrono::steady_clock::time_point deadline_;
  Bounded result_;
};

}  // namespace

Bounded branch_and_bound(const FactorGraph& graph, const Order& order, const DprsLimits& limits,
                         const std::vector<Assignment>& starts, const std::function<double(Assignment&)>& polish) {
  return Search(graph, order, limits, polish).run(starts);
}

}  // namespace softneuro::dprs
