// Plans of least cost within several bounds at once, as squares of errors and bytes. A price on what is bounded finds
// only plans that no mixture of others is better than. Here every entry of a table of the elimination holds a front
// instead of a minimum: partial plans of which none has less of everything than another.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "tune/search/objective.h"

namespace softneuro {

struct Bound {
  Measure measure;
  double most = 0;
};

struct LabelLimits {
  // The search ends once a plan has proven within this share of the best. 0: it ends with the best.
  double epsilon = 1e-4;
  // Partial plans that an entry keeps. Where it had more, some stand for others with as little of what is bounded and
  // slightly smaller costs, and what that may lose counts in the lower bound. The search is repeated with four times
  // as many where that leaves too large a gap.
  size_t front = 32, largest_front = 2048;
  size_t most_labels = size_t{1} << 22;  // of one search; beyond it ends with what is known
  size_t max_entries = size_t{1} << 21;  // of all tables; graphs with more are not searched
  size_t most_sums = size_t{1} << 26;    // of labels, of all searches together
  // A safety net: a result cut short by it depends on the machine.
  double time_limit_s = 1.5;
};

struct LabelStats {
  int prices = 0;                                                // that were tried for bounds
  int searches = 0;                                              // with fronts
  size_t labels = 0;                                             // of all of them
  double priced_cost = std::numeric_limits<double>::infinity();  // of the best plan that prices alone found
  double priced_bound = 0;                                       // that they proved
};

struct WithinBounds {
  std::optional<DprsResult> plan;  // without marginals and regrets
  // No plan within the bounds costs less; +inf if there is none.
  double lower_bound = 0;
  LabelStats stats;
};

// Costs are DPRS's. Conversions count by chains, in the bounds, too: chains that share a schema count as if they did
// not, so a plan has at most what is counted. A plan that is found never is above a bound. Throws Error on more than
// three bounds, and as dprs_solve does.
WithinBounds dprs_within(const DprsProblem& problem, const std::vector<Bound>& bounds, const LabelLimits& limits = {});

}  // namespace softneuro
