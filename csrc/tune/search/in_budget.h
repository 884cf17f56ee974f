// Plans within max_error, where a calibration foretells what they err by, and within max_memory at once.
#pragma once

#include <functional>

#include "tune/search/accuracy.h"
#include "tune/search/peak_limit.h"

namespace softneuro {

// The best plan for an objective's seconds and what has a worth, however dear its errors are there.
WithinBounds solve_in_budget(const Objective& objective, const Accuracy& accuracy, PeakLimit& memory);

// Plans to be timed as wholes, the best first, and what is proven of plans within the budgets. `acceptable` says
// whether a plan keeps to max_error. The price of errors may rise.
LimitedPlans plans_in_budget(const Objective& objective, Accuracy& accuracy, PeakLimit& memory, int k,
                             const std::function<bool(const DprsResult&)>& acceptable);

}  // namespace softneuro
