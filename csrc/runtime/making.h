// One signature while it is being prepared. Internal to runtime/.
#pragma once

#include <optional>

#include "runtime/region.h"

namespace softneuro {

struct Region::Making {
  const Signature& signature;
  const uint64_t weight_set;
  RegionCall& call;
  ShapeState state;
  Plan restored;
  bool first = false;  // of the region
  std::optional<Graph> graph;
  bool apart = false;    // tuned and measured anew: it is not paid for
  bool has_run = false;  // the call, as `side` tells
  Side side = Side::host;
  int64_t host_ns = 0;  // of the host's run that gives the call's results
};

}  // namespace softneuro
