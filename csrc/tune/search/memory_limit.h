// What packed weights cost, and plans whose packed weights stay within a number of bytes.
#pragma once

#include <optional>
#include <vector>

#include "tune/search/objective.h"

namespace softneuro {

// Bytes that weigh up to 1 % more from layer to layer, so that a price can tell equal layers apart.
Measure weighed(Measure bytes);

// Seconds that a byte of packed weights has to save: memory is not to be had for nothing, and what timings scatter is
// no reason to take it. Packings as large as the model's weights have to save 15 % of the network's time, or less, so
// that what is smaller than the fastest routines' packings costs 1 % of it altogether, and up to 3 % while they are
// above 0.6 of the weights. Nothing where the fastest routines' packings are small, whatever the model's weights.
double memory_price(const DprsProblem& seconds, const Measure& bytes, double model_bytes);

// Up to k plans, best first, costs at the objective's prices. All keep within the limit if any plan does; otherwise
// there is one plan, the one that takes least. Without `limited` the limit did not matter and the result is
// dprs_solve's and dprs_k_best's. With it, bytes have a price: regrets count that price in. The best of all plans
// within the limit is among them, or one near it: lower_bound holds for every plan within the limit.
struct LimitedPlans {
  std::vector<DprsResult> plans;
  std::vector<double> regrets;  // by layer
  bool limited = false, fits = true;
  // Seconds, and the price of what is worth something, that no plan within all bounds is below: of errors, too.
  std::optional<double> proven = {};
};
LimitedPlans solve_within(const Objective& objective, const Measure& bytes, double limit, int k);

}  // namespace softneuro
