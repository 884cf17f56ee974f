// Between graphs with their costs and DPRS's abstract problems and solutions.
#pragma once

#include <string>

#include "tune/measure/costs.h"
#include "tune/search/dprs.h"

namespace softneuro {

DprsProblem to_dprs(const Graph& graph, const GraphCosts& costs);
// What computes a layer; null for constants and for layers that a later one's fusion covers.
const Candidate* chosen_candidate(const GraphCosts& costs, const DprsResult& solution, size_t layer);
// Whether a plan runs any layer in another form than that of the graph (graph/forms.h).
bool has_forms(const GraphCosts& costs, const DprsResult& solution);
Assignment to_assignment(const Graph& graph, const GraphCosts& costs, const DprsResult& solution);
// Names everything that was chosen: equal for equal plans of one graph.
std::string plan_text(const Assignment& plan);
// Hash of the sources of a plan's routines, conversions included.
std::string plan_version(const Assignment& plan);

}  // namespace softneuro
