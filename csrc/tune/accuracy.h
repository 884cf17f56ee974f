// Keeps a plan's error within the budget. What a routine does to the network's outputs depends on the network: the same
// relative error may be damped in one layer and magnified hundredfold in another. So the plan is run against one of
// exact routines; if it errs too much, its layers are made exact all but a few at a time, which shows what becomes of
// whose errors, and inexact candidates are priced by what their error does to the outputs until what is measured fits.
#pragma once

#include <optional>
#include <vector>

#include "tune/cost_keys.h"
#include "tune/costs.h"
#include "tune/dprs.h"
#include "tune/trial.h"

namespace softneuro {

struct AccurateSolution {
  DprsProblem problem;  // with the price in the labels' costs
  DprsResult best;
  double price = 0;  // seconds per squared Candidate::error
  double noise = 0;  // plan_noise of the plan
};

// Sum of the squares of Candidate::error over a plan's routines.
double plan_noise(const GraphCosts& costs, const DprsResult& plan);

// Errors come from the database where it knows them, and are measured only if the mode allows it.
class Accuracy {
 public:
  // Candidates' errors in `costs` become the outputs' where solve() measures that.
  Accuracy(const Graph& graph, GraphCosts& costs, const DprsProblem& problem, const Trials& trials);

  // The best plan whose outputs, on random inputs, differ from those of exact routines by less than half of max_error:
  // real inputs may be worse than random ones. An unknown error that is not to be measured is taken to be within the
  // budget, as the doors compare with the host all the same.
  AccurateSolution solve();

  // Whether another plan is within the budget: by its noise, if that is no more than `noise`, or by its outputs. Not
  // if these are unknown and not to be measured.
  bool holds(const DprsResult& plan, double noise);

 private:
  std::optional<double> error(const DprsResult& plan);
  std::vector<double> magnifications(const DprsResult& plan, double usual);
  Tensors run(const Assignment& assignment);

  const Graph& graph_;
  GraphCosts& costs_;
  const DprsProblem& problem_;
  const Trials& trials_;
  Ledger ledger_;
  double budget_;
  Tensors expected_;
};

}  // namespace softneuro
