// Which nodes of the host's graph layers can do, node by node.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "providers/ort/graph/host_graph.h"
#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {

class Classifier {
 public:
  // `tries`: layers are made of what is fixed.
  Classifier(const HostGraph& graph, bool tries);

  // Nodes must be asked in topological order.
  Refusal check(const HostNode& node);
  // Whether a node follows from constants and shapes alone.
  bool folds(const HostNode& node) const;
  bool is_sized(size_t value) const { return kinds_[value] == Kind::sized; }

 private:
  Refusal check_weight(const HostNode& node);
  Refusal check_flow(const HostNode& node) const;
  std::vector<const HostNode*> with_nodes_before(const HostNode& node) const;

  const HostGraph& graph_;
  bool tries_;
  std::vector<Kind> kinds_;
  std::map<int, const HostNode*> before_;  // by value: what makes it, a weight or quantized in the run
};

}  // namespace softneuro::ort
