// What plans are chosen by: seconds, and a price on whatever else a plan has, as errors, packed weights or bytes that
// its steps pass on.
#pragma once

#include <utility>
#include <vector>

#include "tune/search/dprs.h"

namespace softneuro {

// A number for each label, each group and each single conversion, which adds up over a plan.
struct Measure {
  std::vector<std::vector<double>> labels;  // by layer and label
  std::vector<double> groups;
  std::vector<std::vector<double>> adapts = {};  // by blob, [from][to] as DprsProblem::adapts; empty: 0
  int schemas = 0;                               // of `adapts`

  double of(const DprsResult& plan) const;
};

// worth: seconds that one unit has to save. bound: a Lagrange multiplier, whatever it takes to keep to a bound; a plan
// that does is none the better for less.
enum class Pricing : unsigned char { worth, bound };

class Objective {
 public:
  explicit Objective(DprsProblem seconds) : problem_(std::move(seconds)) {}

  // Returns the measure's index.
  size_t add(Measure measure, Pricing pricing, double price = 0);
  const Measure& measure(size_t index) const { return measures_[index].measure; }
  Measure& measure(size_t index) { return measures_[index].measure; }
  double price(size_t measure) const { return measures_[measure].price; }
  void set_price(size_t measure, double price) { measures_[measure].price = price; }

  const DprsProblem& seconds() const { return problem_; }
  double& seconds(size_t layer, const DprsChoice& choice);

  // The problem with all prices on top of the seconds.
  DprsProblem priced() const;
  // What a plan's measures cost: at all prices, or at those only that are worth something.
  double prices(const DprsResult& plan) const;
  double worth(const DprsResult& plan) const;

 private:
  struct Priced {
    Measure measure;
    Pricing pricing;
    double price;
  };

  DprsProblem problem_;
  std::vector<Priced> measures_;
};

// What a plan costs by a problem, conversions that chains share counted once. The plan may be of other costs.
double plan_cost(const DprsProblem& problem, const DprsResult& plan);

// Where a price is looked for that makes plans keep to a bound.
struct PriceRange {
  double highest = 0;    // at which nothing but the measure counts
  double depth = 0;      // the lowest by this below the one at which all of the bound is worth a whole plan
  double precision = 0;  // prices whose ratio is below this are the same
};

struct BoundedPlan {
  DprsResult plan;     // costs include the price
  bool within = true;  // else nothing keeps to the bound, and the plan is the one at the highest price
  // No plan within the bound costs less, that price taken off.
  double lower_bound = 0;
};

// The best plan at the lowest price that keeps a measure to a bound, by bisection; the objective has that price then.
// `over` is its best plan at the price it comes with, which is above the bound.
BoundedPlan solve_within_bound(Objective& objective, size_t measure, double bound, const DprsResult& over,
                               const PriceRange& range);

}  // namespace softneuro
