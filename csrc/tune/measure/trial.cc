#include "tune/measure/trial.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "layers/host/host.h"

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

static bool has_host_steps(const Graph& graph) {
  return std::any_of(graph.layers().begin(), graph.layers().end(),
                     [](const Layer& layer) { return layer.host != nullptr; });
}

static std::shared_ptr<const HostOp> that_bears_all(std::shared_ptr<const HostOp> host) {
  HostOp patient = *host;
  patient.run = [host = std::move(host)](std::span<const TensorView> in, std::span<const TensorView> outs) {
    try {
      host->run(in, outs);
    } catch (const std::exception&) {
      for (const TensorView& out : outs) std::memset(out.data, 0, dtype_bytes(out.schema.dtype, out.shape.elements()));
    }
  };
  return std::make_shared<const HostOp>(std::move(patient));
}

std::shared_ptr<const Net> Trials::prepare(const Graph& graph, const Assignment& plan) const {
  const auto stage = timekeeper.in("prepare nets");
  if (!has_host_steps(graph)) return Net::prepare(graph, plan, settings.threads, cache);
  Graph patient = graph;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    Layer& layer = patient.layer(static_cast<int>(l));
    if (layer.host != nullptr) layer.host = that_bears_all(layer.host);
  }
  return Net::prepare(patient, plan, settings.threads, cache);
}

void Trials::hold_packings() const {
  held = cache.items();
  double sum = 0;
  for (const PackedCache::Item& item : held) sum += static_cast<double>(item.packed->bytes());
  if (sum > most_held) held.clear();
}

bool zero_integers(const Graph& graph, const TensorDesc& desc) {
  return desc.kind == ValueKind::integer && desc.most > 255 && has_host_steps(graph);
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
  try {
    net.run(in_, out_, parallel_for);
  } catch (const RejectedInput&) {  // of no meaning, but the run has been to its end
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace softneuro
