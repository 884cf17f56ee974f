#include <algorithm>

#include "layers/constant/constant.h"
#include "net/fused_layers.h"
#include "net/net.h"

namespace softneuro {
namespace {

class Adapts {
 public:
  Adapts(const Graph& graph, Assignment& assignment) : graph_(graph), assignment_(assignment) {
    schemas_.resize(graph.blobs().size());
    for (size_t k = 0; k < graph.inputs().size(); ++k) produced(graph.inputs()[k], graph.input_schemas()[k]);
  }

  void produced(int blob, const Schema& schema) {
    schemas(blob).push_back(schema);
    for (const AdaptChoice& adapt : assignment_.adapts)
      if (adapt.blob == blob) schemas(blob).push_back(adapt.to);
  }

  void need(int blob, const Schema& to) {
    if (has(blob, to)) return;
    // From the producer's schema, or from another if that is less of a way.
    Schema from = schemas(blob).front();
    std::vector<Schema> chain;
    for (const Schema& schema : schemas(blob)) {
      std::vector<Schema> other = adapt_chain(stored(graph_, assignment_.grids.get(), blob, schema, to), schema, to);
      if (other.empty() || (!chain.empty() && chain.size() <= other.size())) continue;
      chain = std::move(other);
      from = schema;
    }
    if (chain.empty()) {
      throw Error("no conversions lead from " + from.str() + " to " + to.str(),
                  "blob '" + graph_.blob(blob).name + "'");
    }
    for (const Schema& next : chain) {
      if (!has(blob, next)) add(blob, from, next);
      from = next;
    }
  }

 private:
  std::vector<Schema>& schemas(int blob) { return schemas_[static_cast<size_t>(blob)]; }
  bool has(int blob, const Schema& schema) {
    return std::find(schemas(blob).begin(), schemas(blob).end(), schema) != schemas(blob).end();
  }
  void add(int blob, const Schema& from, const Schema& to) {
    assignment_.adapts.push_back({blob, from, to});
    schemas(blob).push_back(to);
  }

  const Graph& graph_;
  Assignment& assignment_;
  std::vector<std::vector<Schema>> schemas_;  // by blob, the producer's first
};

}  // namespace

void add_needed_adapts(const Graph& graph, Assignment& assignment, int threads) {
  Adapts adapts(graph, assignment);
  const FusedLayers fused(graph, assignment.layers, assignment.grids.get());
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const auto index = static_cast<int>(l);
    if (fused.covered(index)) continue;
    const Layer& layer = fused.layer(index);
    const Routine* routine = assignment.layers.at(l).routine;
    if (routine == nullptr) {  // a constant
      adapts.produced(layer.output(), constant_schema(layer));
      continue;
    }
    const Problem problem = fused.problem(index, threads);
    for (size_t k = 0; k < layer.inputs.size(); ++k)
      adapts.need(layer.inputs[k], routine->input_schema(problem, static_cast<int>(k)));
    for (size_t k = 0; k < layer.outputs.size(); ++k)
      adapts.produced(layer.outputs[k], routine->output_schema(problem, static_cast<int>(k)));
  }
  for (size_t k = 0; k < graph.outputs().size(); ++k) adapts.need(graph.outputs()[k], graph.output_schemas()[k]);
}

Assignment default_assignment(const Graph& graph, int threads) {
  Assignment assignment;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    RoutineChoice choice;
    if (graph.layers()[l].type != "constant") {
      const Problem problem = graph.problem(static_cast<int>(l), threads);
      choice.routine = accepting_routines(problem).at(0);
      choice.tuning = tunings(*choice.routine, problem).front();
    }
    assignment.layers.push_back(std::move(choice));
  }
  add_needed_adapts(graph, assignment, threads);
  return assignment;
}

}  // namespace softneuro
