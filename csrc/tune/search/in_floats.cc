#include "tune/search/in_floats.h"

#include <algorithm>

#include "net/fused_layers.h"

namespace softneuro {
namespace {

bool is_quantized(const TensorDesc& desc) { return desc.quantization != nullptr; }

bool has_quantized_weights(const Layer& layer) {
  return std::any_of(layer.weights.begin(), layer.weights.end(),
                     [](const auto& weight) { return is_quantized(weight.second->desc()); });
}

bool reads_bytes(const Routine& routine, const Problem& problem) {
  for (size_t i = 0; i < problem.in.size(); ++i) {
    if (is_quantized(problem.in[i]) && routine.input_schema(problem, static_cast<int>(i)).dtype == DType::qint8) {
      return true;
    }
  }
  return false;
}

std::string reason(const Problem& problem, const Routine& chosen, bool measured) {
  // It makes bytes of its input itself.
  if (problem.layer->type.starts_with("dynamic_"))
    return chosen.info().fallback ? "no routine of integers takes it" : "";
  if (std::none_of(problem.in.begin(), problem.in.end(), is_quantized)) {
    return has_quantized_weights(*problem.layer) ? "its input is not quantized" : "";
  }
  if (chosen.info().view || reads_bytes(chosen, problem)) return {};
  const DType out = is_quantized(problem.out()) ? DType::qint8 : DType::float32;
  std::string found =
      "no routine of " + problem.layer->type + " reads bytes and writes " + (out == DType::qint8 ? "bytes" : "floats");
  for (const auto& routine : routines(problem.layer->type)) {
    const RoutineInfo& info = routine->info();
    if (info.in.dtype != DType::qint8 || info.out.dtype != out || !isa_available(info.isa)) continue;
    const Refusal refusal = accepts(*routine, problem);
    if (refusal.accepted()) return measured ? "floats cost less" : "floats are expected to cost less";
    found = refusal.reason();
  }
  return found;
}

}  // namespace

void note_floats(const Graph& graph, int threads, TuneResult& result) {
  const FusedLayers fused(graph, result.assignment.layers, result.assignment.grids.get());
  for (size_t l = 0; l < result.layers.size(); ++l) {
    const Routine* chosen = result.assignment.layers[l].routine;
    if (chosen == nullptr) continue;
    const Problem problem = fused.problem(static_cast<int>(l), threads);
    result.layers[l].in_floats = reason(problem, *chosen, result.layers[l].measured);
  }
}

}  // namespace softneuro
