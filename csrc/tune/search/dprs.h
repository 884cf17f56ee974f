// DPRS, dynamic programming for routine selection: picks one label (a routine) per layer of a net so that routines plus
// conversions cost least. Abstract: layers, blobs and schemas are small integers, costs come from the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace softneuro {

// One way to compute a layer. A schema of -1 in `in` means that the input may have any.
struct DprsLabel {
  double cost = 0;           // >= 0; +inf for "not available"
  std::vector<int> in, out;  // schema per input and output slot of the layer
};

struct DprsLayer {
  std::vector<int> inputs, outputs;  // blob ids; a blob may fill several input slots
  std::vector<DprsLabel> labels;
};

// A layer's part in a candidate that computes several layers at once. Slots of inner blobs (produced and read inside)
// are ignored.
struct DprsCover {
  int layer = -1;
  std::vector<int> in, out;
};

// Inner blobs must not be read outside, be graph outputs, or leave and re-enter the group. Groups may overlap: the plan
// takes all of a group or nothing of it.
struct DprsGroup {
  double cost = 0;
  std::vector<DprsCover> covers;
};

struct DprsInput {
  int blob = -1;
  std::vector<int> schemas;  // that it is available in, at no cost
};

struct DprsOutput {
  int blob = -1;
  int schema = -1;  // that it is wanted in
};

struct DprsProblem {
  int schemas = 0;
  int blobs = 0;
  std::vector<DprsLayer> layers;  // in topological order
  std::vector<DprsGroup> groups;
  // Per blob the cost of one conversion, row-major [from][to], +inf for impossible; empty for "none possible".
  // Conversions through other schemas are found here.
  std::vector<std::vector<double>> adapts;
  std::vector<DprsInput> inputs;
  std::vector<DprsOutput> outputs;
};

struct DprsLimits {
  // Exact elimination is used while its largest table and all its tables together stay within these (entries of 8
  // bytes); beyond them mini-buckets with tables up to mini_table, and branch and bound.
  size_t max_table = size_t{1} << 21;
  size_t max_entries = size_t{1} << 25;
  size_t mini_table = size_t{1} << 12;
  int64_t max_nodes = 200'000;  // of the branch and bound
  // Wall clock for the branch and bound, a safety net: a result cut short by it depends on the machine.
  double time_limit_s = 1.5;
};

// Exactly one of the two is set.
struct DprsChoice {
  int label = -1;
  int group = -1;
  friend bool operator==(const DprsChoice&, const DprsChoice&) = default;
};

struct DprsAdapt {
  int blob = -1;
  int from = -1, to = -1;
  double cost = 0;
  friend bool operator==(const DprsAdapt&, const DprsAdapt&) = default;
};

struct DprsStats {
  int variables = 0;         // layers and auxiliary ones
  double largest_table = 0;  // entries, of exact elimination in the order found
  double table_entries = 0;  // of all tables
  int64_t nodes = 0;         // that branch and bound visited
};

struct DprsResult {
  std::vector<DprsChoice> choices;  // per layer
  // Each schema of a blob is made once; chains appear in order.
  std::vector<DprsAdapt> adapts;
  double cost = 0;
  double lower_bound = 0;  // equals cost if exact
  bool exact = false;
  // Least total cost of a plan that contains the label or group; +inf if there is none. If not exact: the cost of the
  // plan found with that one label exchanged, an upper bound (+inf where that alone is no plan).
  std::vector<std::vector<double>> label_marginals;
  std::vector<double> group_marginals;
  // Per layer what forbidding its choice would cost at least; +inf if there is no other.
  std::vector<double> regrets;
  DprsStats stats;

  double gap() const { return cost - lower_bound; }
};

// The cost of a plan is the sum of its labels and groups, plus for each blob and each schema that a reader wants and
// the producer does not deliver the cheapest chain of conversions: priced once per (blob, schema), however many read
// it. Two chains of one blob that share an intermediate schema are priced as if they did not, so `cost` may exceed the
// sum of `adapts`. Ties go to the lower index. Throws Error on a malformed problem, naming the layer, blob or group,
// and when a layer has no candidate or no plan exists.
DprsResult dprs_solve(const DprsProblem& problem, const DprsLimits& limits = {});

// Up to k distinct plans, best first: the best, then for the labels and groups of smallest regret the best plan that
// contains them. The second is the second best of all when the solution is exact; later ones are good, not
// necessarily the next best. Only `choices`, `adapts`, `cost`, `lower_bound`, `exact` and `stats` are set beyond the
// first. `best` is dprs_solve's result for the problem.
std::vector<DprsResult> dprs_k_best(const DprsProblem& problem, const DprsResult& best, int k,
                                    const DprsLimits& limits = {});

}  // namespace softneuro
