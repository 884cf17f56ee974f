#include "graph/fusions.h"

#include <algorithm>

#include "graph/forms.h"

namespace softneuro {

#define SN_FUSION(name) void name(const Graph& graph, std::vector<Fusion>& fusions);
namespace fusions {
#include "graph/fusions.inc"
}
#undef SN_FUSION

std::vector<Fusion> find_fusions(const Graph& graph, const Grids* grids) {
  std::vector<Fusion> found;
#define SN_FUSION(name) fusions::name(graph, found);
#include "graph/fusions.inc"
#undef SN_FUSION
  if (grids != nullptr) {
    for (Fusion& form : find_forms(graph, *grids)) found.push_back(std::move(form));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Fusion& a, const Fusion& b) { return a.layers.back() < b.layers.back(); });
  return found;
}

Problem fusion_problem(const Graph& graph, const Fusion& fusion, int threads) {
  if (fusion.is_form()) return {&fusion.layer, fusion.in, fusion.outs, threads};
  Problem problem{&fusion.layer, {}, {}, threads};
  for (const int blob : fusion.layer.inputs) problem.in.push_back(graph.blob(blob).desc);
  for (const int blob : fusion.layer.outputs) problem.outs.push_back(graph.blob(blob).desc);
  return problem;
}

const Fusion* fusion_at(const std::vector<Fusion>& fusions, int last, const RoutineChoice& choice,
                        const std::vector<bool>& covered) {
  const Fusion* longest = nullptr;
  for (const Fusion& fusion : fusions) {
    if (fusion.layers.back() != last || fusion.layer.type != choice.routine->info().layer_type) continue;
    if (fusion.is_form() && !computes_form(choice, fusion)) continue;
    const bool all = std::all_of(fusion.layers.begin(), fusion.layers.end() - 1,
                                 [&](int layer) { return covered[static_cast<size_t>(layer)]; });
    if (all && (longest == nullptr || fusion.layers.size() > longest->layers.size())) longest = &fusion;
  }
  return longest;
}

void set_stage(Layer& fused, const std::string& role, const Layer& stage, bool last) {
  fused.set_weight(role + "_weight", stage.weight("weight"));
  if (const Constant* bias = stage.find_weight("bias")) fused.set_weight(role + "_bias", *bias);
  const Activation& activation = stage.post.activation;
  if (last || activation.kind == ActivationKind::none) return;
  fused.attrs.set(role + "_function", std::string(activation_name(activation.kind)));
  if (activation.a != 0) fused.attrs.set(role + "_a", static_cast<double>(activation.a));
  if (activation.b != 0) fused.attrs.set(role + "_b", static_cast<double>(activation.b));
}

void set_ends(const Graph& graph, Fusion& fusion) {
  const Layer& first = graph.layers()[static_cast<size_t>(fusion.layers.front())];
  const Layer& last = graph.layers()[static_cast<size_t>(fusion.layers.back())];
  fusion.layer.name = last.name;
  fusion.layer.inputs = {first.inputs[0]};
  fusion.layer.post = last.post;
  if (last.post.residual) fusion.layer.inputs.push_back(last.inputs.back());
  fusion.layer.outputs = last.outputs;
}

}  // namespace softneuro
