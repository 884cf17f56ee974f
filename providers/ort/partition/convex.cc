#include "providers/ort/partition/convex.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "providers/ort/lower/quantized_values.h"

namespace softneuro::ort {
namespace {

// A supported node's depth is the largest number of ops of the host between regions on any path to it. Nodes of one
// depth form a convex set, whose connected parts are the regions; no two of them can wait for each other.
class Depths {
 public:
  Depths(const OpGraph& graph, const std::vector<bool>& supported)
      : graph_(graph), supported_(supported), depths_(graph.nodes.size(), 0), links_(links_of(graph)) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      depths_[n] = supported[n] ? 0 : -1;
      for (const int source : links_.sources[n]) {
        const int from = depths_[at(source)];
        const bool gap = supported[n] && !supported[at(source)] && from >= 0;
        depths_[n] = std::max(depths_[n], from + (gap ? 1 : 0));
      }
    }
    for (size_t n = graph.nodes.size(); n-- > 0;) join_readers(n);
  }

  bool joined(int source, size_t node) const {
    return supported_[node] && supported_[at(source)] && depths_[at(source)] == depths_[node];
  }
  const std::vector<int>& sources(size_t node) const { return links_.sources[node]; }

 private:
  static size_t at(int index) { return static_cast<size_t>(index); }

  // What dequantizes goes with what it is for: bytes cross the border, and weights are with their op.
  void join_readers(size_t n) {
    if (!supported_[n] || !is_dequantize(graph_.nodes[n]) || links_.readers[n].empty()) return;
    int least = depths_[at(links_.readers[n][0])];
    for (const int reader : links_.readers[n]) {
      if (!supported_[at(reader)]) return;
      least = std::min(least, depths_[at(reader)]);
    }
    depths_[n] = least;
  }

  const OpGraph& graph_;
  const std::vector<bool>& supported_;
  std::vector<int> depths_;
  Links links_;
};

}  // namespace

std::vector<std::vector<int>> convex_parts(const OpGraph& graph, const std::vector<bool>& supported) {
  const Depths depths(graph, supported);
  std::vector<int> parent(graph.nodes.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int node) {
    while (parent[static_cast<size_t>(node)] != node) {
      auto& up = parent[static_cast<size_t>(node)];
      up = parent[static_cast<size_t>(up)];
      node = up;
    }
    return node;
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int source : depths.sources(n)) {
      if (depths.joined(source, n)) parent[static_cast<size_t>(root(source))] = root(static_cast<int>(n));
    }
  }
  std::map<int, std::vector<int>> groups;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (supported[n]) groups[root(static_cast<int>(n))].push_back(static_cast<int>(n));
  }
  std::vector<std::vector<int>> parts;
  for (auto& [_, nodes] : groups) parts.push_back(std::move(nodes));
  return parts;
}

}  // namespace softneuro::ort
