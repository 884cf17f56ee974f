#include "tune/plan/plan_error.h"

#include <algorithm>
#include <cstdio>

#include "base/error_measure.h"
#include "base/log.h"
#include "base/text.h"
#include "net/fused_layers.h"
#include "tune/records/cost_keys.h"
#include "tune/search/solution.h"

namespace softneuro {
namespace {

// Nearly normal values of variance one, as images commonly are after normalisation.
Tensors random_inputs(const Graph& graph) {
  Tensors tensors;
  uint32_t state = 2463534242;
  const auto uniform = [&] {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return static_cast<float>(state >> 8) * (2.0F / 16777216.0F) - 1.0F;
  };
  for (size_t k = 0; k < graph.inputs().size(); ++k) {
    const TensorDesc& desc = graph.blob(graph.inputs()[k]).desc;
    // Integers are nearly normal around the middle of a byte, so that there are some of each.
    const bool integer = desc.kind == ValueKind::integer || desc.quantization != nullptr;
    const bool zero = zero_integers(graph, desc);
    tensors.emplace_back(desc, graph.input_schemas()[k]).fill([&] {
      const float x = uniform() + uniform() + uniform();
      return zero ? 0 : integer ? 128 + 40 * x : x;
    });
  }
  return tensors;
}

// The error costs two runs and the packed weights that these need.
double measured_error(const Graph& graph, const Assignment& plan, const TuneSettings& settings, CostDb& db,
                      const ParallelFor& parallel_for) {
  Timekeeper timekeeper(settings.time_budget_s);
  TuneSettings unmeasured = settings;
  unmeasured.mode = TuneMode::off;  // which takes exact routines alone
  const Assignment exact = tune(graph, unmeasured, db, parallel_for).assignment;
  const Trials trials{settings, db, parallel_for, PackedCache::shared(), timekeeper, 0};
  const Tensors expected = outputs_of(graph, exact, trials);
  const double error = worst_error(outputs_of(graph, plan, trials), expected);
  Ledger(db, settings.threads).add_error(error_signature(graph), plan, error);
  char text[128];
  std::snprintf(text, sizeof(text),
                "tune: a plan's error on other weights than it was made for is %.1e: two runs, %.0f ms", error,
                1e3 * timekeeper.spent());
  log_info(text);
  return error;
}

}  // namespace

bool is_exact(const Graph& graph, const Assignment& plan, int threads) {
  if (plan.grids != nullptr) return false;
  const FusedLayers fused(graph, plan.layers, plan.grids.get());
  for (size_t l = 0; l < plan.layers.size(); ++l) {
    const auto& [routine, tuning] = plan.layers[l];
    if (routine == nullptr || routine->info().error == ErrorClass::exact) continue;
    if (routine->expected_error(fused.problem(static_cast<int>(l), threads), tuning) > 0) return false;
  }
  return true;
}

Tensors outputs_of(const Graph& graph, const Assignment& plan, const Trials& trials) {
  Graph unrounded = graph;
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    const TensorDesc& desc = graph.blob(graph.outputs()[k]).desc;
    const bool real = desc.kind == ValueKind::real && desc.quantization == nullptr;
    if (real) unrounded.set_output_schema(static_cast<int>(k), graph.output_schemas()[k].with(DType::float32));
  }
  const auto net = trials.prepare(unrounded, plan);
  trials.hold_packings();
  Trial trial(unrounded, random_inputs(unrounded));
  trial.run(*net, trials.parallel_for);
  return trial.take_outputs();
}

double worst_error(const Tensors& results, const Tensors& expected) {
  constexpr double most = 1e3;
  double worst = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    worst = std::max(worst, relative_error(results[i].elements(), expected[i].elements()));
  }
  return std::min(worst, most);
}

std::string error_signature(const Graph& graph) {
  return "error of graph " + graph.structural_hash() + " weights " + graph.weights_identity();
}

std::optional<double> known_error(const Graph& graph, const TuneResult& plan, const TuneSettings& settings,
                                  CostDb& db) {
  if (is_exact(graph, plan.assignment, settings.threads)) return 0;
  const std::string weights = graph.weights_identity();
  for (const ProvenError& proven : plan.proven) {
    if (proven.weights == weights) return proven.error;
  }
  if (settings.mode == TuneMode::off) return {};
  return Ledger(db, settings.threads).find_error(error_signature(graph), plan.assignment);
}

bool is_bearable(const TuneResult& plan, double error, const TuneSettings& settings) {
  const double share = plan.assignment.grids != nullptr ? 1 : random_share;
  return error <= share * settings.limits.max_error;
}

TuneResult bearable(const Graph& graph, TuneResult plan, const TuneSettings& settings, CostDb& db,
                    const ParallelFor& parallel_for) {
  std::optional<double> error = known_error(graph, plan, settings, db);
  if (!error && settings.mode == TuneMode::profile && plan.assignment.grids == nullptr) {
    error = measured_error(graph, plan.assignment, settings, db, parallel_for);
    if (is_bearable(plan, *error, settings)) plan.proven.push_back({graph.weights_identity(), *error});
  }
  if (error && is_bearable(plan, *error, settings)) return plan;
  if (!error) log_info("tune: nobody has measured the plan's error on these weights: exact routines compute them");
  return tune(graph, settings, db, parallel_for);
}

}  // namespace softneuro
