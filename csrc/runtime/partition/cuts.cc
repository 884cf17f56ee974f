#include "runtime/partition/cuts.h"

#include <map>
#include <set>

namespace softneuro {
namespace {

constexpr size_t most = 8;  // regions before a node, or after it

void insert(std::set<int>& to, int one) {
  if (to.size() < most) to.insert(one);
}

}  // namespace

std::vector<Cut> find_cuts(const OpLinks& links, const std::vector<int>& part, const std::vector<bool>& kept) {
  // The regions that a node reads, and that read it, through nodes alone that no region has.
  std::vector<std::set<int>> above(part.size()), below(part.size());
  const auto collect = [&](const std::vector<int>& near, std::vector<std::set<int>>& sets, size_t n) {
    for (const int other : near) {
      if (part[slot(other)] >= 0) {
        insert(sets[n], part[slot(other)]);
      } else if (part[n] < 0) {
        for (const int one : sets[slot(other)]) insert(sets[n], one);
      }
    }
  };
  for (size_t n = 0; n < part.size(); ++n) collect(links.sources[n], above, n), collect(links.after[n], above, n);
  for (size_t n = part.size(); n-- > 0;) collect(links.readers[n], below, n), collect(links.later[n], below, n);
  std::map<std::pair<int, int>, std::vector<int>> between;
  std::map<int, std::vector<int>> waited_for;
  for (size_t n = 0; n < part.size(); ++n) {
    if (part[n] >= 0 || !kept[n]) continue;
    for (const int after : below[n]) {
      waited_for[after].push_back(static_cast<int>(n));
      for (const int before : above[n]) between[{before, after}].push_back(static_cast<int>(n));
    }
  }
  std::vector<Cut> cuts;
  for (size_t n = 0; n < part.size(); ++n) {
    if (part[n] < 0) continue;
    for (const int before : above[n]) {
      if (before != part[n]) between.try_emplace({before, part[n]}, waited_for[part[n]]);
    }
  }
  for (auto& [pair, nodes] : between) {
    if (!nodes.empty()) cuts.push_back({pair.first, pair.second, std::move(nodes)});
  }
  return cuts;
}

}  // namespace softneuro
