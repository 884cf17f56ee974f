// Between graphs with their costs and DPRS's abstract problems and solutions.
#pragma once

#include <string>

#include "tune/costs.h"
#include "tune/dprs.h"

namespace softneuro {

DprsProblem to_dprs(const Graph& graph, const GraphCosts& costs);
Assignment to_assignment(const Graph& graph, const GraphCosts& costs, const DprsResult& solution);
// Of everything that was chosen: equal for equal plans of one graph.
std::string plan_text(const Assignment& plan);

}  // namespace softneuro
