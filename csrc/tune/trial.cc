#include "tune/trial.h"

#include <chrono>
#include <utility>

namespace softneuro {

static Tensors make_tensors(const Graph& graph, const std::vector<int>& blobs) {
  Tensors tensors;
  for (const int blob : blobs) tensors.emplace_back(static_cast<size_t>(graph.blob(blob).desc.shape.elements()), 0.5F);
  return tensors;
}

Trial::Trial(const Graph& graph) : Trial(graph, make_tensors(graph, graph.inputs())) {}

Trial::Trial(const Graph& graph, Tensors inputs)
    : inputs_(std::move(inputs)), outputs_(make_tensors(graph, graph.outputs())) {
  for (auto& memory : inputs_) in_.push_back(memory.data());
  for (auto& memory : outputs_) out_.push_back(memory.data());
}

double Trial::run(const Net& net, const ParallelFor& parallel_for) {
  const auto start = std::chrono::steady_clock::now();
  net.run(in_, out_, parallel_for);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<StepTime> Trial::profile(const Net& net, const ParallelFor& parallel_for, int rounds) {
  net.run(in_, out_, parallel_for);
  return net.profile(in_, out_, parallel_for, rounds);
}

}  // namespace softneuro
