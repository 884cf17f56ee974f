// Keeps a plan's error within the budget. What a routine does to the network's outputs depends on the network: the same
// relative error may be damped in one layer and magnified hundredfold in another. So the plan is run against one of
// exact routines; if it errs too much, its layers are made exact all but a few at a time, which shows what becomes of
// whose errors, and inexact candidates are priced by what their error does to the outputs until what is measured fits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/measure/costs.h"
#include "tune/measure/trial.h"
#include "tune/records/cost_keys.h"
#include "tune/search/dprs_labels.h"
#include "tune/search/objective.h"

namespace softneuro {

// Errors come from the database where it knows them for the graph's own weights, and are measured only if the mode
// allows it.
class Accuracy {
 public:
  // The objective gets squared errors as another measure, at the price that find_price() finds. They are the expected
  // ones, and become the outputs' where it measures that.
  Accuracy(const Graph& graph, const GraphCosts& costs, Objective& objective, const Trials& trials);

  // Such that the best plan's outputs, on random inputs, differ from those of exact routines by less than half of
  // max_error: real inputs may be worse than random ones. Where its error is unknown and not to be measured, exact
  // routines alone are left.
  // With a calibration, the errors that it foretells for its data keep to max_error instead.
  void find_price();

  // Makes errors dearer where another price has led to a plan that does not keep to the limit. False at the highest.
  bool raise_price(const DprsResult& plan);

  // Whether another plan is within the budget: by its noise, if that says so, or by its outputs. Not if these are
  // unknown and not to be measured.
  bool holds(const DprsResult& plan);
  // The errors that are known of such a plan.
  std::vector<ProvenError> proven(const DprsResult& plan);
  // What the calibration says of it; 0 without one.
  double foretold(const DprsResult& plan) const;
  // As a bound: its square is.
  Bound foretold_bound() const;
  // An objective with the same measures, whose errors have no price.
  Objective unpriced(Objective objective) const;

 private:
  void find_foretold_price();
  const std::string& signature_of_errors();
  double noise_of(const DprsResult& plan) const { return objective_.measure(noise_).of(plan); }
  DprsResult solve_exact(size_t begin, size_t end) const;
  std::optional<double> error(const DprsResult& plan);
  size_t most_for(const DprsResult& plan);
  std::vector<double> magnifications(const DprsResult& plan, double usual);

  const Graph& graph_;
  const GraphCosts& costs_;
  Objective& objective_;
  const Trials& trials_;
  size_t noise_;  // the measure
  Measure unproven_;
  Ledger ledger_;
  std::string signature_;
  double budget_;
  double proven_noise_ = 0;  // of plans within the budget
  Tensors expected_;
  double trial_seconds_ = 0;  // of the last one
};

}  // namespace softneuro
