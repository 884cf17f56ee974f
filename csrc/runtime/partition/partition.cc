#include "runtime/partition/partition.h"

#include <algorithm>
#include <utility>

#include "runtime/partition/convex.h"
#include "runtime/partition/units.h"

namespace softneuro {
namespace {

class Cutter {
 public:
  Cutter(const OpGraph& graph, const PartitionRules& rules)
      : graph_(graph), rules_(rules), links_(links_of(graph)), supported_(graph.nodes.size()) {
    for (size_t n = 0; n < supported_.size(); ++n) {
      supported_[n] = graph.nodes[n].refusal.empty();
      if (!supported_[n]) made_.host[static_cast<int>(n)] = graph.nodes[n].refusal;
    }
  }

  Partition find() {
    do {
      made_.parts.clear();
      while (true) {
        leave_units(graph_, links_, supported_, made_.host);
        join();
        if (!leave_misfits()) break;
      }
      left_ = supported_;
      left_.flip();
      keep_large();
      for (const auto& [n, _] : made_.host) supported_[slot(n)] = false;
    } while (leave_units(graph_, links_, supported_, made_.host));
    note_steps();
    return std::move(made_);
  }

 private:
  void join() {
    steps_.assign(supported_.size(), false);
    if (rules_.join) {
      steps_ = find_steps(graph_, links_, supported_, rules_.min_region_size, rules_.step_refusal);
      const std::vector<bool> moves = moves_between(graph_, links_, supported_, steps_);
      for (size_t n = 0; n < moves.size(); ++n) steps_[n] = steps_[n] || moves[n];
    }
    std::vector<bool> taken = supported_;
    for (size_t n = 0; n < taken.size(); ++n) taken[n] = taken[n] || steps_[n];
    parts_ = convex_parts(graph_, links_, taken);
  }

  std::vector<int> numbers(const std::vector<std::vector<int>>& parts) const {
    std::vector<int> part(supported_.size(), -1);
    for (size_t p = 0; p < parts.size(); ++p) {
      for (const int n : parts[p]) part[slot(n)] = static_cast<int>(p);
    }
    return part;
  }

  // Leaves to the host what its part has no use for. Whether there was any.
  bool leave_misfits() {
    std::map<int, std::string> misfits;
    for (const int n : cut_nodes(graph_, links_, supported_, numbers(parts_))) {
      misfits.emplace(n, "it would have to be in two regions at once");
    }
    for (const std::vector<int>& part : parts_) {
      if (rules_.misfits) misfits.merge(rules_.misfits(part));
    }
    bool any = false;
    for (auto& [n, reason] : misfits) {
      if (!supported_[slot(n)]) continue;
      any = true;
      supported_[slot(n)] = false;
      made_.host[n] = std::move(reason);
    }
    return any;
  }

  // Drops moves at the rim that the host does without a copy. What converts a result stays: a net writes either type.
  std::vector<int> trimmed(const std::vector<int>& nodes) {
    for (const int n : nodes) kept_[slot(n)] = true;
    const auto kept = [&](int other) { return kept_[slot(other)]; };
    for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
      const OpNode& node = graph_.nodes[slot(*n)];
      if (steps_[slot(*n)] || node.at_rim == AtRim::stays) continue;
      const auto &readers = links_.readers[slot(*n)], &sources = links_.sources[slot(*n)];
      const auto& later = links_.later[slot(*n)];
      const bool wanted = std::any_of(readers.begin(), readers.end(), kept) ||
                          std::any_of(later.begin(), later.end(), kept) ||
                          (node.at_rim == AtRim::converts && std::any_of(sources.begin(), sources.end(), kept));
      kept_[slot(*n)] = wanted;
    }
    std::vector<int> left;
    std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(left), kept);
    for (const int n : nodes) kept_[slot(n)] = false;
    return left;
  }

  void keep_large() {
    kept_.assign(supported_.size(), false);
    for (const std::vector<int>& nodes : parts_) {
      Partition::Part part{trimmed(nodes), 0, {}};
      for (const int n : part.nodes) part.ops += ops_of(n);
      const bool is_large = part.ops > 0 && part.ops >= rules_.min_region_size;
      for (const int n : nodes) {
        if (steps_[slot(n)] && (is_large || !supported_[slot(n)])) continue;
        made_.host[n] = is_large ? "it moves elements at the rim of a region"
                        : !links_.is_read[slot(n)]
                            ? "nobody reads what it makes"
                            : "its region has " + std::to_string(part.ops) +
                                  " op(s), fewer than min_region_size=" + std::to_string(rules_.min_region_size);
      }
      if (!is_large) continue;
      for (const int n : part.nodes) {
        if (!steps_[slot(n)]) made_.host.erase(n);
      }
      made_.parts.push_back(std::move(part));
    }
  }

  int ops_of(int n) const { return steps_[slot(n)] || !links_.is_read[slot(n)] ? 0 : graph_.nodes[slot(n)].ops; }

  void note_steps() {
    std::vector<std::vector<int>> parts;
    for (const Partition::Part& part : made_.parts) parts.push_back(part.nodes);
    const std::vector<int> part = numbers(parts);
    // Steps follow each other by what is inside their region alone.
    OpLinks inside = links_;
    std::vector<bool> steps(part.size());
    for (size_t n = 0; n < part.size(); ++n) {
      const auto outside = [&](int other) { return part[slot(other)] != part[n]; };
      for (auto* near : {&inside.sources[n], &inside.readers[n], &inside.after[n]}) std::erase_if(*near, outside);
      steps[n] = part[n] >= 0 && steps_[n];
    }
    for (std::vector<int>& group : convex_parts(graph_, inside, steps)) {
      for (const int n : group) {
        auto reason = made_.host.extract(n);
        made_.step_reasons[n] = reason.empty() ? "it lies between steps" : std::move(reason.mapped());
      }
      made_.parts[slot(part[slot(group[0])])].steps.push_back(std::move(group));
    }
    if (rules_.cuts) made_.cuts = find_cuts(links_, part, left_);
  }

  const OpGraph& graph_;
  const PartitionRules& rules_;
  OpLinks links_;
  std::vector<bool> supported_, steps_, kept_;
  std::vector<bool> left_;  // to the host, and not for the size or the rim of a region
  std::vector<std::vector<int>> parts_;
  Partition made_;
};

}  // namespace

Partition find_parts(const OpGraph& graph, const PartitionRules& rules) { return Cutter(graph, rules).find(); }

}  // namespace softneuro
