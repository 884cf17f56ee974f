// One signature while it is being prepared. Internal to runtime/.
#pragma once

#include <optional>

#include "runtime/region.h"

namespace softneuro {

struct Region::Making {
  const Signature& signature;
  const WeightSet& weights;
  RegionCall& call;
  ShapeState state;
  Plan restored;
  bool as_saved = false;  // that plan is taken, with grids of its own
  bool first = false;     // of the region
  std::optional<Graph> graph;
  bool apart = false;    // tuned and measured anew: it is not paid for
  bool has_run = false;  // the call, as `side` tells
  Side side = Side::host;
  int64_t host_ns = 0;  // of the host's run that gives the call's results
  int64_t start = 0;
  int64_t planning_ns = 0;   // where a plan was chosen anew
  bool has_net = false;      // so that it tells what others are going to cost
  Unplanned::Mark mark = 0;  // of its graph's structure, if no plan was known for it
};

}  // namespace softneuro
