// Min-sum inference over a factor graph: what DPRS is reduced to.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "tune/search/dprs.h"

namespace softneuro::dprs {

// The cost of what cannot be.
inline constexpr double infinity = std::numeric_limits<double>::infinity();

using Assignment = std::vector<int>;  // a value per variable

// Row-major over the scope, the last variable fastest.
struct Factor {
  std::vector<int> scope;
  std::vector<double> table;
};

struct FactorGraph {
  std::vector<int> domains;
  std::vector<Factor> factors;
  double constant = 0;
};

struct Order {
  std::vector<int> variables;  // in the order of elimination
  double largest = 0;          // entries of the largest table
  double total = 0;            // of all tables
};

// The better of a min-fill and a min-weight order. Ties go to the lower variable.
Order choose_order(const FactorGraph& graph);

// A table over `scope` with the odometer's bookkeeping in one place.
class Table {
 public:
  Table(const FactorGraph& graph, std::vector<int> scope, double fill = 0);
  const std::vector<int>& scope() const { return scope_; }
  std::vector<double>& data() { return data_; }
  // this += sign * factor, whose scope is within this one's. An infinite entry stays infinite.
  void add(const Factor& factor, double sign = 1);
  // Minimum over all variables that are not in `scope`.
  Factor project(const FactorGraph& graph, const std::vector<int>& scope) const;

 private:
  template <typename Visit>
  void walk(const std::vector<int>& scope, Visit&& visit) const;

  std::vector<int> scope_, dims_;
  std::vector<double> data_;
};

// Index of an assignment in a factor's table.
size_t factor_index(const FactorGraph& graph, const Factor& factor, const Assignment& values);

struct Exact {
  Assignment values;
  double cost = 0;                             // +inf if there is no solution
  std::vector<std::vector<double>> marginals;  // of the first `with_marginals` variables
};

Exact eliminate(const FactorGraph& graph, const Order& order, int with_marginals);

struct Bounded {
  Assignment values;  // empty if none was found
  double cost = 0, lower_bound = 0;
  bool complete = false;  // the search was exhausted: cost is the optimum
  int64_t nodes = 0;
};

// `polish` may improve a solution in place and returns its cost. `starts` are tried before the search.
Bounded branch_and_bound(const FactorGraph& graph, const Order& order, const DprsLimits& limits,
                         const std::vector<Assignment>& starts, const std::function<double(Assignment&)>& polish);

}  // namespace softneuro::dprs
