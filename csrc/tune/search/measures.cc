#include "tune/search/measures.h"

#include <algorithm>
#include <cmath>

#include "base/arch.h"

namespace softneuro {
namespace {

double squared(const std::vector<double>& errors, int index) {
  const double error = errors[static_cast<size_t>(index)];
  return error * error;
}

// What the network makes of a layer's error, by what it makes of that of its weights in bytes.
double magnification(const Calibration& calibration, int layer) {
  constexpr double usual = 0.008;  // error of a product's result by weights in bytes, a scale for each output
  const auto& forms = calibration.layer_errors[static_cast<size_t>(layer)];
  const auto known = forms.find("bytes");
  return known != forms.end() ? std::max(1.0, known->second / usual) : 1;
}

// Those of a form's weights, and of its output unless its values were those of an input's bytes.
double rounding_of(const Fusion& form, const Calibration& calibration) {
  const auto& own = calibration.layer_errors[static_cast<size_t>(form.layers.front())];
  const auto error = own.find(form.kind);
  const bool rounds = form.kind != "bytes" || (form.bytes[0] && form.layer.find_weight("weight") != nullptr);
  double sum = !rounds || error == own.end() ? 0 : error->second * error->second;
  if (rounds && error == own.end()) sum = unknown_error * unknown_error;
  if (form.layer.post.quantize != nullptr) sum += squared(calibration.blob_errors, form.layer.output());
  return sum;
}

// What a plan's own grids do to the outputs: as if all roundings were independent.
void add_roundings(const Graph& graph, const GraphCosts& costs, const Calibration& calibration, Measure& measure) {
  for (size_t g = 0; g < costs.fused.size(); ++g) {
    const Fusion& fusion = *costs.fused[g].fusion;
    if (fusion.is_form()) measure.groups[g] += rounding_of(fusion, calibration);
  }
  const size_t n = costs.schemas.size();
  measure.schemas = static_cast<int>(n);
  measure.adapts.resize(graph.blobs().size());
  for (size_t b = 0; b < graph.blobs().size(); ++b) {
    if (costs.grids->blobs()[b] == nullptr) continue;
    measure.adapts[b].assign(n * n, 0);
    for (size_t from = 0; from < n; ++from) {
      for (size_t to = 0; to < n; ++to) {
        const bool rounds = costs.schemas[from].dtype != DType::qint8 && costs.schemas[to].dtype == DType::qint8;
        if (rounds) measure.adapts[b][from * n + to] = squared(calibration.blob_errors, static_cast<int>(b));
      }
    }
  }
}

}  // namespace

Measure measure_candidates(const Graph& graph, const GraphCosts& costs,
                           const std::function<double(const Candidate& candidate, int layer)>& value) {
  Measure measure;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    std::vector<double>& labels = measure.labels.emplace_back();
    if (graph.layers()[l].type == "constant") labels.push_back(0);
    for (const Candidate& candidate : costs.layers[l]) labels.push_back(value(candidate, static_cast<int>(l)));
  }
  for (const FusedCost& fused : costs.fused) {
    measure.groups.push_back(value(fused.candidate, fused.fusion->layers.back()));
  }
  return measure;
}

Measure squared_errors(const Graph& graph, const GraphCosts& costs, const Calibration* calibration) {
  Measure measure = measure_candidates(graph, costs, [&](const Candidate& candidate, int layer) {
    const double error = candidate.error * (calibration != nullptr ? magnification(*calibration, layer) : 1);
    return error * error;
  });
  for (size_t g = 0; g < costs.fused.size() && calibration != nullptr; ++g) {
    double most = 1;
    for (const int layer : costs.fused[g].fusion->layers) most = std::max(most, magnification(*calibration, layer));
    measure.groups[g] = std::pow(costs.fused[g].candidate.error * most, 2);
  }
  if (costs.grids != nullptr) add_roundings(graph, costs, *calibration, measure);
  return measure;
}

Measure unproven_errors(const Graph& graph, const GraphCosts& costs, const std::vector<double>& proven) {
  return measure_candidates(graph, costs, [&](const Candidate& candidate, int layer) {
    const double own = proven.empty() ? 0 : proven[static_cast<size_t>(layer)];
    return candidate.error > own ? 1.0 : 0.0;
  });
}

Measure packed_bytes(const Graph& graph, const GraphCosts& costs) {
  return measure_candidates(
      graph, costs, [](const Candidate& candidate, int) { return static_cast<double>(candidate.packed_bytes); });
}

Measure passed_bytes(const Graph& graph, const GraphCosts& costs) {
  return measure_candidates(graph, costs, [&](const Candidate& candidate, int layer) {
    const std::vector<int>& outputs = graph.layers()[static_cast<size_t>(layer)].outputs;
    double total = 0;
    for (size_t k = 0; k < outputs.size(); ++k) {
      const int64_t elements = graph.blob(outputs[k]).desc.shape.elements();
      total += static_cast<double>(dtype_bytes(candidate.outs[k].dtype, elements));
    }
    return total;
  });
}

// As a guest's on a CPU with several last caches do for seconds at a time. What another core holds is then written at
// 2.5 GB/s instead of 80, which costs measured while they are together do not tell: MobileNetV2 took 1.02 times as long
// with all its blocks fused then, and apart 0.87.
double passing_price(int threads) { return threads > 1 && cores_may_be_apart() ? 2e-11 / threads : 0; }

}  // namespace softneuro
