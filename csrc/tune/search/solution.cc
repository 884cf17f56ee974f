#include "tune/search/solution.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "base/text.h"
#include "layers/constant/constant.h"

namespace softneuro {

// A layer's part in a fusion: the schemas of the fusion's own inputs and output, anything for blobs inside.
static DprsCover cover(const Graph& graph, const GraphCosts& costs, const FusedCost& fused, int l) {
  const Layer& layer = graph.layers()[static_cast<size_t>(l)];
  const Layer& whole = fused.fusion->layer;
  DprsCover part{l, {}, {}};
  for (size_t k = 0; k < layer.outputs.size(); ++k) {
    const bool last = fused.fusion->layers.back() == l && k < fused.candidate.outs.size();
    part.out.push_back(costs.schema_index(fused.candidate.outs[last ? k : 0]));
  }
  if (fused.fusion->is_form()) {  // whose slots are the layer's, though two of them have one blob
    for (const Schema& schema : fused.candidate.in) part.in.push_back(costs.schema_index(schema));
    return part;
  }
  for (const int blob : layer.inputs) {
    const auto at = std::find(whole.inputs.begin(), whole.inputs.end(), blob) - whole.inputs.begin();
    const bool outer = at < static_cast<std::ptrdiff_t>(whole.inputs.size());
    part.in.push_back(
        costs.schema_index(outer ? fused.candidate.in[static_cast<size_t>(at)] : fused.candidate.outs[0]));
  }
  return part;
}

DprsProblem to_dprs(const Graph& graph, const GraphCosts& costs) {
  DprsProblem problem;
  problem.schemas = static_cast<int>(costs.schemas.size());
  problem.blobs = static_cast<int>(graph.blobs().size());
  problem.adapts = costs.adapts;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    DprsLayer& entry = problem.layers.emplace_back();
    entry.inputs = layer.inputs;
    entry.outputs = layer.outputs;
    if (layer.type == "constant") entry.labels.push_back({0, {}, {costs.schema_index(constant_schema(layer))}});
    for (const Candidate& candidate : costs.layers[l]) {
      DprsLabel& label = entry.labels.emplace_back();
      label.cost = candidate.seconds;
      for (const Schema& schema : candidate.in) label.in.push_back(costs.schema_index(schema));
      for (const Schema& schema : candidate.outs) label.out.push_back(costs.schema_index(schema));
    }
  }
  for (const FusedCost& fused : costs.fused) {
    DprsGroup& group = problem.groups.emplace_back();
    group.cost = fused.candidate.seconds;
    for (const int l : fused.fusion->layers) group.covers.push_back(cover(graph, costs, fused, l));
  }
  for (size_t k = 0; k < graph.inputs().size(); ++k)
    problem.inputs.push_back({graph.inputs()[k], {costs.schema_index(graph.input_schemas()[k])}});
  for (size_t k = 0; k < graph.outputs().size(); ++k)
    problem.outputs.push_back({graph.outputs()[k], costs.schema_index(graph.output_schemas()[k])});
  return problem;
}

const Candidate* chosen_candidate(const GraphCosts& costs, const DprsResult& solution, size_t l) {
  const DprsChoice& choice = solution.choices[l];
  if (choice.group >= 0) {
    const FusedCost& fused = costs.fused[static_cast<size_t>(choice.group)];
    return static_cast<size_t>(fused.fusion->layers.back()) == l ? &fused.candidate : nullptr;
  }
  return costs.layers[l].empty() ? nullptr : &costs.layers[l][static_cast<size_t>(choice.label)];
}

bool has_forms(const GraphCosts& costs, const DprsResult& solution) {
  return std::any_of(solution.choices.begin(), solution.choices.end(), [&](const DprsChoice& choice) {
    return choice.group >= 0 && costs.fused[static_cast<size_t>(choice.group)].fusion->is_form();
  });
}

Assignment to_assignment(const Graph& graph, const GraphCosts& costs, const DprsResult& solution) {
  Assignment assignment;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Candidate* candidate = chosen_candidate(costs, solution, l);
    assignment.layers.push_back(candidate == nullptr ? RoutineChoice{} : candidate->choice);
  }
  for (const DprsAdapt& adapt : solution.adapts) {
    assignment.adapts.push_back(
        {adapt.blob, costs.schemas[static_cast<size_t>(adapt.from)], costs.schemas[static_cast<size_t>(adapt.to)]});
  }
  if (has_forms(costs, solution)) assignment.grids = costs.grids;
  return assignment;
}

std::string plan_text(const Assignment& plan) {
  std::string text = plan.grids != nullptr ? content_hash(plan.grids->text()) + "\n" : "";
  for (const RoutineChoice& choice : plan.layers) text += (choice.routine ? choice.descriptor() : "") + "\n";
  for (const AdaptChoice& adapt : plan.adapts) {
    text += std::to_string(adapt.blob) + " " + adapt.from.str() + " " + adapt.to.str() + "\n";
  }
  return text;
}

std::string plan_version(const Assignment& plan) {
  std::set<std::string> hashes;
  for (const RoutineChoice& choice : plan.layers) {
    if (choice.routine != nullptr) hashes.insert(choice.routine->source_hash());
  }
  for (const AdaptChoice& adapt : plan.adapts) {
    for (const auto& routine : routines("adapt")) {
      const bool does_it = routine->info().in == adapt.from && routine->info().out == adapt.to;
      if (does_it) hashes.insert(routine->source_hash());
    }
  }
  std::string text;
  for (const std::string& hash : hashes) text += hash + "\n";
  return content_hash(text).substr(0, 16);
}

}  // namespace softneuro
