// What a graph's plans are measured by besides seconds.
#pragma once

#include <functional>

#include "tune/measure/costs.h"
#include "tune/search/objective.h"

namespace softneuro {

// By what computes a layer: a candidate of its own, or a fusion's, of which it is the last one.
Measure measure_candidates(const Graph& graph, const GraphCosts& costs,
                           const std::function<double(const Candidate& candidate, int layer)>& value);

// Squares of expected errors, which add up like those of independent sums.
Measure squared_errors(const Graph& graph, const GraphCosts& costs, const Calibration* calibration);
// One where a candidate errs by more than has proven bearable for its layer; where nothing has, only exact ones do not.
Measure unproven_errors(const Graph& graph, const GraphCosts& costs, const std::vector<double>& proven = {});
Measure packed_bytes(const Graph& graph, const GraphCosts& costs);
// What steps pass on to others: their outputs. A fusion passes on nothing within.
Measure passed_bytes(const Graph& graph, const GraphCosts& costs);

// Seconds for what a plan is to have none of.
inline constexpr double forbidden = 1e6;
// Seconds that a byte passed on costs where threads may come to be apart.
double passing_price(int threads);

}  // namespace softneuro
