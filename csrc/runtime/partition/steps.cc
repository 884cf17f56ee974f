#include "runtime/partition/steps.h"

#include <algorithm>
#include <numeric>

#include "runtime/partition/convex.h"

namespace softneuro {
namespace {

class Steps {
 public:
  Steps(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& supported, int least)
      : graph_(graph),
        links_(links),
        supported_(supported),
        ops_(supported.size(), 0),
        is_worth_(supported.size(), false) {
    for (const std::vector<int>& part : convex_parts(graph, links, supported)) {
      const int ops = count_ops(graph, part, supported);
      for (const int n : part) {
        ops_[slot(n)] = ops;
        is_worth_[slot(n)] = ops >= least && graph.nodes[slot(n)].ops > 0;
      }
    }
  }

  // Keeps the candidates that are few enough beside the regions that they join. They follow each other through moves,
  // too.
  std::vector<bool> few_enough(const std::vector<bool>& candidates) const {
    std::vector<int> parent(candidates.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int n) {
      while (parent[slot(n)] != n) n = parent[slot(n)] = parent[slot(parent[slot(n)])];
      return n;
    };
    std::vector<bool> inner = candidates;  // between two regions that compute
    for (size_t n = 0; n < inner.size(); ++n) inner[n] = inner[n] || (supported_[n] && ops_[n] == 0);
    const auto for_links = [&](const auto& visit) {
      for (size_t n = 0; n < inner.size(); ++n) {
        for (const int source : links_.sources[n]) visit(source, static_cast<int>(n));
      }
    };
    for_links([&](int from, int to) {
      if (inner[slot(from)] && inner[slot(to)]) parent[slot(root(from))] = root(to);
    });
    struct Cluster {
      int steps = 0, before = 0, after = 0;  // ops of the largest region on either side
    };
    std::vector<Cluster> clusters(inner.size());  // by root
    const auto cluster = [&](int n) -> Cluster& { return clusters[slot(root(n))]; };
    for (size_t n = 0; n < inner.size(); ++n) {
      if (candidates[n]) ++cluster(static_cast<int>(n)).steps;
    }
    for_links([&](int from, int to) {
      if (inner[slot(to)]) cluster(to).before = std::max(cluster(to).before, ops_[slot(from)]);
      if (inner[slot(from)]) cluster(from).after = std::max(cluster(from).after, ops_[slot(to)]);
    });
    std::vector<bool> few(inner.size(), false);
    for (size_t n = 0; n < inner.size(); ++n) {
      const Cluster& found = cluster(static_cast<int>(n));
      few[n] = candidates[n] && found.before + found.after >= found.steps;
    }
    return few;
  }

  // Keeps the steps that lie on a way from one region to another.
  std::vector<bool> on_ways(std::vector<bool> steps) const {
    while (true) {
      std::vector<bool> taken = supported_;
      for (size_t n = 0; n < steps.size(); ++n) taken[n] = taken[n] || steps[n];
      std::vector<bool> kept(steps.size(), false);
      std::vector<int> part_of(steps.size(), -1);
      int number = 0;
      std::vector<bool> after(steps.size(), false), before(steps.size(), false);
      for (const std::vector<int>& part : convex_parts(graph_, links_, taken)) {
        for (const int n : part) part_of[slot(n)] = number;
        const auto reached = [&](const std::vector<int>& near, const std::vector<bool>& known) {
          return std::any_of(near.begin(), near.end(), [&](int other) {
            return part_of[slot(other)] == number && (is_worth_[slot(other)] || known[slot(other)]);
          });
        };
        for (const int n : part) after[slot(n)] = reached(links_.sources[slot(n)], after);
        for (auto n = part.rbegin(); n != part.rend(); ++n)
          before[slot(*n)] = reached(links_.readers[slot(*n)], before);
        for (const int n : part) kept[slot(n)] = steps[slot(n)] && after[slot(n)] && before[slot(n)];
        ++number;
      }
      if (kept == steps) return steps;
      steps = std::move(kept);
    }
  }

 private:
  const OpGraph& graph_;
  const OpLinks& links_;
  const std::vector<bool>& supported_;
  std::vector<int> ops_;        // by node: of its region without steps
  std::vector<bool> is_worth_;  // by node: it computes, in a region that is large enough without steps
};

}  // namespace

int count_ops(const OpGraph& graph, const std::vector<int>& nodes, const std::vector<bool>& supported) {
  int ops = 0;
  for (const int n : nodes) ops += supported[slot(n)] ? graph.nodes[slot(n)].ops : 0;
  return ops;
}

std::vector<bool> find_steps(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& supported, int least,
                             const StepRefusal& refusal) {
  const Steps finder(graph, links, supported, least);
  std::vector<bool> candidates(supported.size(), false), asked(supported.size(), false);
  for (size_t n = 0; n < candidates.size(); ++n) candidates[n] = !supported[n] && graph.nodes[n].may_be_step;
  while (true) {
    // Only what lies on a way counts among the steps that have to be few.
    std::vector<bool> steps = finder.on_ways(finder.few_enough(finder.on_ways(candidates)));
    bool all = true;
    for (size_t n = 0; n < steps.size(); ++n) {
      if (!steps[n] || asked[n]) continue;
      asked[n] = true;
      if (!refusal || refusal(static_cast<int>(n)).empty()) continue;
      candidates[n] = all = false;
    }
    if (all) return steps;
  }
}

std::vector<bool> moves_between(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& supported,
                                const std::vector<bool>& steps) {
  std::vector<bool> moves(steps.size(), false);
  const auto stays = [&](size_t n) {
    const auto inside = [&](int other) { return steps[slot(other)] || moves[slot(other)]; };
    const auto is_output = [&](int id) { return id >= 0 && graph.values[slot(id)].is_output; };
    const OpNode& node = graph.nodes[n];
    const auto read = std::count_if(node.inputs.begin(), node.inputs.end(), [](int id) { return id >= 0; });
    return read > 0 && links.sources[n].size() == static_cast<size_t>(read) && !links.readers[n].empty() &&
           std::all_of(links.sources[n].begin(), links.sources[n].end(), inside) &&
           std::all_of(links.readers[n].begin(), links.readers[n].end(), inside) &&
           std::none_of(node.outputs.begin(), node.outputs.end(), is_output);
  };
  std::vector<int> open;
  for (size_t n = 0; n < moves.size(); ++n) {
    const OpNode& node = graph.nodes[n];
    moves[n] = supported[n] && node.ops == 0 && node.at_rim != AtRim::stays && node.may_be_step;
    if (moves[n]) open.push_back(static_cast<int>(n));
  }
  while (!open.empty()) {
    const auto n = slot(open.back());
    open.pop_back();
    if (!moves[n] || stays(n)) continue;
    moves[n] = false;
    for (const auto* near : {&links.sources[n], &links.readers[n]}) open.insert(open.end(), near->begin(), near->end());
  }
  return moves;
}

}  // namespace softneuro
