#include "providers/ort/partition/join.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "providers/ort/host/host_step.h"

namespace softneuro::ort {
namespace {

class Joining {
 public:
  Joining(const OpGraph& graph, const std::vector<Partition::Part>& parts)
      : graph_(graph), ops_(graph.nodes.size(), 0), readers_(graph.values.size()) {
    for (const Partition::Part& part : parts) {
      for (const int n : part.nodes) ops_[at(n)] = part.ops;
    }
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const int id : graph.nodes[n].inputs) {
        if (id >= 0) readers_[at(id)].push_back(static_cast<int>(n));
      }
    }
  }

  std::vector<bool> find(const std::vector<bool>& candidates, int least) const {
    std::vector<int> parent(graph_.nodes.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int n) {
      while (parent[at(n)] != n) n = parent[at(n)] = parent[at(parent[at(n)])];
      return n;
    };
    for_links([&](int from, int to) {
      if (candidates[at(from)] && candidates[at(to)]) parent[at(root(from))] = root(to);
    });
    struct Sides {
      int steps = 0, before = 0, after = 0;  // ops of the largest part on either side
    };
    std::map<int, Sides> clusters;
    for (size_t n = 0; n < candidates.size(); ++n) {
      if (candidates[n]) ++clusters[root(static_cast<int>(n))].steps;
    }
    for_links([&](int from, int to) {
      if (candidates[at(to)]) clusters[root(to)].before = std::max(clusters[root(to)].before, ops_[at(from)]);
      if (candidates[at(from)]) clusters[root(from)].after = std::max(clusters[root(from)].after, ops_[at(to)]);
    });
    std::vector<bool> joining(candidates.size(), false);
    for (size_t n = 0; n < candidates.size(); ++n) {
      if (!candidates[n]) continue;
      const Sides& sides = clusters[root(static_cast<int>(n))];
      joining[n] = std::min(sides.before, sides.after) >= std::max(least, sides.steps);
    }
    return joining;
  }

 private:
  static size_t at(int index) { return static_cast<size_t>(index); }

  template <typename Link>
  void for_links(const Link& link) const {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const int id : graph_.nodes[n].outputs) {
        if (id < 0) continue;
        for (const int reader : readers_[at(id)]) link(static_cast<int>(n), reader);
      }
    }
  }

  const OpGraph& graph_;
  std::vector<int> ops_;  // by node: of its part
  std::vector<std::vector<int>> readers_;
};

}  // namespace

std::vector<bool> joining_steps(const OpGraph& graph, const std::vector<Partition::Part>& parts,
                                std::vector<bool> candidates, int min_region_size) {
  const Joining joining(graph, parts);
  std::vector<bool> checked(candidates.size(), false);
  while (true) {
    const std::vector<bool> steps = joining.find(candidates, min_region_size);
    bool all = true;
    for (size_t n = 0; n < steps.size(); ++n) {
      if (!steps[n] || checked[n]) continue;
      checked[n] = true;
      if (check_step(graph, graph.nodes[n]).accepted()) continue;
      candidates[n] = all = false;
    }
    if (all) return steps;
  }
}

}  // namespace softneuro::ort
