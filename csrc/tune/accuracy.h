// Keeps a plan's error within the budget. What a routine does to the network's outputs depends on the network: the same
// relative error per layer may be damped or magnified hundredfold. So the plan is run against one of exact routines,
// and inexact candidates are priced by their expected error until what is measured fits.
#pragma once

#include "tune/costs.h"
#include "tune/dprs.h"

namespace softneuro {

struct AccurateSolution {
  DprsProblem problem;  // with the price in the labels' costs
  DprsResult best;
  double price = 0;  // seconds per squared expected error
  double noise = 0;  // the sum of the plan's squared expected errors: what other plans may have too
};

// Sum of the squared expected errors of a plan's routines.
double plan_noise(const GraphCosts& costs, const DprsResult& plan);

// The best plan whose outputs, on random inputs, differ from those of exact routines by less than half of max_error:
// real inputs may be worse than random ones. Errors come from the database where it knows them; in other modes than
// `profile` an unknown error is taken to be within the budget, as the doors compare with the host all the same.
AccurateSolution solve_within_budget(const Graph& graph, const GraphCosts& costs, const DprsProblem& problem,
                                     const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                                     PackedCache& cache);

}  // namespace softneuro
