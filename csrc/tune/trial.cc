#include "tune/trial.h"

#include <chrono>
#include <utility>

namespace softneuro {

HostTensor::HostTensor(TensorDesc what, const Schema& how)
    : desc(std::move(what)), schema(how), memory(bytes(desc, schema)) {}

void HostTensor::fill(const std::function<float()>& next) {
  const int64_t count = physical_elements(desc.shape, schema.layout);
  with_dtype(schema.dtype, [&](auto kind) {
    using T = decltype(kind);
    T* data = static_cast<T*>(memory.data());
    for (int64_t i = 0; i < count; ++i) data[i] = element_from<T>(next());
  });
}

Elements HostTensor::elements() const {
  return Elements(schema.dtype, memory.data(), physical_elements(desc.shape, schema.layout));
}

static Tensors make_tensors(const Graph& graph, const std::vector<int>& blobs, const std::vector<Schema>& schemas) {
  Tensors tensors;
  for (size_t k = 0; k < blobs.size(); ++k) {
    tensors.emplace_back(graph.blob(blobs[k]).desc, schemas[k]).fill([] { return 0.5F; });
  }
  return tensors;
}

Trial::Trial(const Graph& graph) : Trial(graph, make_tensors(graph, graph.inputs(), graph.input_schemas())) {}

Trial::Trial(const Graph& graph, Tensors inputs)
    : inputs_(std::move(inputs)), outputs_(make_tensors(graph, graph.outputs(), graph.output_schemas())) {
  for (const HostTensor& tensor : inputs_) in_.push_back(tensor.memory.data());
  for (const HostTensor& tensor : outputs_) out_.push_back(tensor.memory.data());
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
