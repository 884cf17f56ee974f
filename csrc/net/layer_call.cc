#include "net/layer_call.h"

#include <algorithm>

#include "base/error.h"

namespace softneuro {
namespace {

// Finds a routine by a descriptor, with or without params.
RoutineChoice named(std::string_view descriptor) {
  for (const auto& routine : routines(descriptor.substr(0, descriptor.find('/')))) {
    if (routine->descriptor() == descriptor) return {routine.get(), {}};
  }
  return find_routine(descriptor);
}

std::string why_not_sparse(const Problem& problem) {
  for (const auto& routine : routines(problem.layer->type)) {
    const Refusal refusal = accepts(*routine, problem);
    if (routine->info().exploits_sparsity && !refusal.accepted()) return refusal.reason();
  }
  return "there is none here";
}

RoutineChoice choose(const Problem& problem, std::string_view wanted, bool sparse) {
  std::vector<std::pair<std::string, std::string>> refusals;
  std::vector<const Routine*> accepting = accepting_routines(problem, &refusals);
  if (accepting.empty()) throw Error("no routine accepts the layer", ProblemClass(problem).str());
  if (sparse) {
    std::erase_if(accepting, [](const Routine* routine) { return !routine->info().exploits_sparsity; });
    if (accepting.empty()) throw Error("no sparse routine accepts the layer: " + why_not_sparse(problem));
  }
  if (wanted.empty()) return {accepting.front(), tunings(*accepting.front(), problem).front()};
  if (wanted.find('/') != std::string_view::npos) {
    RoutineChoice choice = named(wanted);
    if (sparse && !choice.routine->info().exploits_sparsity) {
      throw Error("the routine makes no use of zeros in weights", std::string(wanted));
    }
    const Refusal refusal = accepts(*choice.routine, problem);
    if (!refusal.accepted()) throw Error("the routine declines: " + refusal.reason(), std::string(wanted));
    const std::vector<Tuning> offered = tunings(*choice.routine, problem);
    if (wanted.find('{') == std::string_view::npos) choice.tuning = offered.front();
    if (std::find(offered.begin(), offered.end(), choice.tuning) == offered.end()) {
      throw Error("the routine does not offer these params for this layer", std::string(wanted),
                  "for instance " + choice.routine->descriptor(offered.front()));
    }
    return choice;
  }
  for (const Routine* routine : accepting) {
    if (routine->info().algorithm == wanted) return {routine, tunings(*routine, problem).front()};
  }
  for (const auto& [descriptor, reason] : refusals) {
    const std::string_view last = std::string_view(descriptor).substr(descriptor.rfind('/') + 1);
    if (last.starts_with(wanted)) throw Error("the routine declines: " + reason, descriptor);
  }
  std::string known;
  for (const Routine* routine : accepting) known += (known.empty() ? "" : ", ") + routine->info().algorithm;
  throw Error("unknown routine '" + std::string(wanted) + "'", {}, "these accept the layer: " + known);
}

}  // namespace

Layer conv2d_pair_of(const Layer& first, const Layer& second) {
  Layer pair;
  pair.type = "conv2d_pair";
  for (const auto& [name, value] : first.attrs.items()) pair.attrs.set("first_" + name, value);
  for (const auto& [name, value] : second.attrs.items()) pair.attrs.set("second_" + name, value);
  const Activation& activation = first.post.activation;
  pair.attrs.set("first_function", std::string(activation_name(activation.kind)));
  pair.attrs.set("first_a", static_cast<double>(activation.a));
  pair.attrs.set("first_b", static_cast<double>(activation.b));
  pair.post = second.post;
  return pair;
}

std::shared_ptr<const Net> prepare_layer(Layer layer, const std::vector<TensorDesc>& in, std::string_view routine,
                                         int threads, bool sparse) {
  Graph graph;
  layer.inputs.clear();
  for (size_t i = 0; i < in.size(); ++i) {
    layer.inputs.push_back(graph.add_input("x" + std::to_string(i), in[i], natural_schema(in[i])));
  }
  const int made = graph.add_layer(std::move(layer));
  graph.add_output(made, natural_schema(graph.blob(made).desc));
  const Problem problem = graph.problem(0, threads);
  Assignment assignment{{choose(problem, routine, sparse)}, {}};
  add_needed_adapts(graph, assignment, threads);
  return Net::prepare(graph, assignment, threads, PackedCache::shared());
}

}  // namespace softneuro
