#include "tune/solution.h"

namespace softneuro {

DprsProblem to_dprs(const Graph& graph, const GraphCosts& costs) {
  DprsProblem problem;
  problem.schemas = static_cast<int>(costs.schemas.size());
  problem.blobs = static_cast<int>(graph.blobs().size());
  problem.adapts = costs.adapts;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    DprsLayer& entry = problem.layers.emplace_back();
    entry.inputs = layer.inputs;
    entry.outputs = {layer.output};
    if (layer.type == "constant") entry.labels.push_back({0, {}, {costs.schema_index(f32_nchw)}});
    for (const Candidate& candidate : costs.layers[l]) {
      DprsLabel& label = entry.labels.emplace_back();
      label.cost = candidate.seconds;
      for (const Schema& schema : candidate.in) label.in.push_back(costs.schema_index(schema));
      label.out = {costs.schema_index(candidate.out)};
    }
  }
  for (const int blob : graph.inputs()) problem.inputs.push_back({blob, {costs.schema_index(f32_nchw)}});
  for (const int blob : graph.outputs()) problem.outputs.push_back({blob, costs.schema_index(f32_nchw)});
  return problem;
}

Assignment to_assignment(const Graph& graph, const GraphCosts& costs, const DprsResult& solution) {
  Assignment assignment;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const auto label = static_cast<size_t>(solution.choices[l].label);
    assignment.layers.push_back(costs.layers[l].empty() ? RoutineChoice{} : costs.layers[l][label].choice);
  }
  for (const DprsAdapt& adapt : solution.adapts) {
    assignment.adapts.push_back(
        {adapt.blob, costs.schemas[static_cast<size_t>(adapt.from)], costs.schemas[static_cast<size_t>(adapt.to)]});
  }
  return assignment;
}

std::string plan_text(const Assignment& plan) {
  std::string text;
  for (const RoutineChoice& choice : plan.layers) text += (choice.routine ? choice.descriptor() : "") + "\n";
  for (const AdaptChoice& adapt : plan.adapts) {
    text += std::to_string(adapt.blob) + " " + adapt.from.str() + " " + adapt.to.str() + "\n";
  }
  return text;
}

}  // namespace softneuro
