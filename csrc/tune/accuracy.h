// Keeps a plan's error within the budget. What a routine does to the network's outputs depends on the network: the same
// relative error may be damped in one layer and magnified hundredfold in another. So the plan is run against one of
// exact routines; if it errs too much, its layers are made exact all but a few at a time, which shows what becomes of
// whose errors, and inexact candidates are priced by what their error does to the outputs until what is measured fits.
#pragma once

#include "tune/costs.h"
#include "tune/dprs.h"

namespace softneuro {

struct AccurateSolution {
  DprsProblem problem;  // with the price in the labels' costs
  DprsResult best;
  double price = 0;  // seconds per squared Candidate::error
  double noise = 0;  // plan_noise of the plan: what other plans may have too
};

// Sum of the squares of Candidate::error over a plan's routines.
double plan_noise(const GraphCosts& costs, const DprsResult& plan);

// The best plan whose outputs, on random inputs, differ from those of exact routines by less than half of max_error:
// real inputs may be worse than random ones. Errors come from the database where it knows them; in other modes than
// `profile` an unknown error is taken to be within the budget, as the doors compare with the host all the same.
// Candidates' errors in `costs` become the outputs' where that was measured.
AccurateSolution solve_within_budget(const Graph& graph, GraphCosts& costs, const DprsProblem& problem,
                                     const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                                     PackedCache& cache);

}  // namespace softneuro
