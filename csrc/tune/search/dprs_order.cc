// Elimination order by greedy heuristics.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "tune/search/dprs_factors.h"

namespace softneuro::dprs {
namespace {

using Adjacency = std::vector<std::vector<int>>;  // sorted neighbours

Adjacency neighbours(const FactorGraph& graph) {
  Adjacency adjacent(graph.domains.size());
  for (const Factor& factor : graph.factors) {
    for (int a : factor.scope) {
      for (int b : factor.scope) {
        if (a != b) adjacent[static_cast<size_t>(a)].push_back(b);
      }
    }
  }
  for (auto& list : adjacent) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return adjacent;
}

class Greedy {
 public:
  Greedy(const FactorGraph& graph, bool by_fill)
      : graph_(graph), by_fill_(by_fill), adjacent_(neighbours(graph)), scores_(graph.domains.size()) {
    for (int v = 0; v < static_cast<int>(scores_.size()); ++v) queue_.insert(score(v));
  }

  Order run() {
    Order order;
    while (!queue_.empty()) {
      int v = std::get<2>(*queue_.begin());
      double entries = std::exp2(weight(v));
      order.largest = std::max(order.largest, entries);
      order.total += entries;
      order.variables.push_back(v);
      remove(v);
    }
    return order;
  }

 private:
  using Score = std::tuple<double, double, int>;

  double weight(int v) const {
    double bits = std::log2(graph_.domains[static_cast<size_t>(v)]);
    for (int n : adjacent_[static_cast<size_t>(v)]) bits += std::log2(graph_.domains[static_cast<size_t>(n)]);
    return bits;
  }

  double fill(int v) const {
    const auto& list = adjacent_[static_cast<size_t>(v)];
    size_t missing = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      const auto& other = adjacent_[static_cast<size_t>(list[i])];
      for (size_t j = i + 1; j < list.size(); ++j) missing += !std::binary_search(other.begin(), other.end(), list[j]);
    }
    return static_cast<double>(missing);
  }

  const Score& score(int v) {
    Score& cached = scores_[static_cast<size_t>(v)];
    cached = by_fill_ ? Score{fill(v), weight(v), v} : Score{weight(v), fill(v), v};
    return cached;
  }

  void remove(int v) {
    queue_.erase(scores_[static_cast<size_t>(v)]);
    const std::vector<int> list = std::move(adjacent_[static_cast<size_t>(v)]);
    std::set<int> touched(list.begin(), list.end());
    for (int n : list) {
      auto& other = adjacent_[static_cast<size_t>(n)];
      std::vector<int> merged;
      std::set_union(other.begin(), other.end(), list.begin(), list.end(), std::back_inserter(merged));
      std::erase_if(merged, [&](int x) { return x == v || x == n; });
      if (by_fill_ && merged.size() != other.size() - 1) touched.insert(merged.begin(), merged.end());
      other = std::move(merged);
    }
    // New edges change the fill of common neighbours, which are neighbours of an end of each.
    for (int n : touched) {
      queue_.erase(scores_[static_cast<size_t>(n)]);
      queue_.insert(score(n));
    }
  }

  const FactorGraph& graph_;
  bool by_fill_;
  Adjacency adjacent_;
  std::vector<Score> scores_;
  std::set<Score> queue_;
};

}  // namespace

Order choose_order(const FactorGraph& graph) {
  Order fill = Greedy(graph, true).run();
  Order weight = Greedy(graph, false).run();
  return weight.total < fill.total ? weight : fill;
}

}  // namespace softneuro::dprs
