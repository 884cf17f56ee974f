#include "runtime/partition/convex.h"

#include <algorithm>
#include <numeric>

namespace softneuro {
namespace {

std::vector<int> depths_of(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& taken) {
  std::vector<int> depths(taken.size());
  for (size_t n = 0; n < taken.size(); ++n) {
    depths[n] = taken[n] ? 0 : -1;
    const auto follow = [&](int source) {
      const int from = depths[slot(source)];
      const bool gap = taken[n] && !taken[slot(source)] && from >= 0;
      depths[n] = std::max(depths[n], from + (gap ? 1 : 0));
    };
    for (const int source : links.sources[n]) follow(source);
    for (const int source : links.after[n]) follow(source);
  }
  for (size_t n = taken.size(); n-- > 0;) {
    const std::vector<int>& readers = links.readers[n];
    if (!taken[n] || !graph.nodes[n].with_readers || readers.empty() || !links.later[n].empty()) continue;
    if (!std::all_of(readers.begin(), readers.end(), [&](int reader) { return taken[slot(reader)]; })) continue;
    const auto depth = [&](int a, int b) { return depths[slot(a)] < depths[slot(b)]; };
    depths[n] = depths[slot(*std::min_element(readers.begin(), readers.end(), depth))];
  }
  return depths;
}

}  // namespace

std::vector<std::vector<int>> convex_parts(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& taken) {
  const std::vector<int> depths = depths_of(graph, links, taken);
  std::vector<int> parent(taken.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int node) {
    while (parent[slot(node)] != node) node = parent[slot(node)] = parent[slot(parent[slot(node)])];
    return node;
  };
  for (size_t n = 0; n < taken.size(); ++n) {
    for (const auto* waits : {&links.sources[n], &links.after[n]}) {
      for (const int source : *waits) {
        const bool joined = taken[n] && taken[slot(source)] && depths[slot(source)] == depths[n];
        if (joined) parent[slot(root(source))] = root(static_cast<int>(n));
      }
    }
  }
  std::vector<std::vector<int>> parts;
  std::vector<int> place(taken.size(), -1);  // by root
  for (size_t n = 0; n < taken.size(); ++n) {
    if (!taken[n]) continue;
    int& part = place[slot(root(static_cast<int>(n)))];
    if (part < 0) {
      part = static_cast<int>(parts.size());
      parts.emplace_back();
    }
    parts[slot(part)].push_back(static_cast<int>(n));
  }
  return parts;
}

}  // namespace softneuro
