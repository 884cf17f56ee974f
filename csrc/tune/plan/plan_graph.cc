#include "tune/plan/plan_graph.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "net/fused_layers.h"
#include "tune/measure/costs.h"
#include "tune/plan/near_shapes.h"
#include "tune/records/cost_keys.h"
#include "tune/search/in_floats.h"

namespace softneuro {
namespace {

std::string shapes_of(const Graph& graph) {
  std::string text;
  for (const int input : graph.inputs()) text += (text.empty() ? "" : ",") + graph.blob(input).desc.shape.str();
  return text;
}

// The numbers in a text of shapes. What a file says may be larger than any size.
Sizes sizes_in(const std::string& shapes) {
  Sizes sizes;
  bool inside = false;
  for (const char c : shapes) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !inside) sizes.push_back(0);
    if (digit) sizes.back() = std::min<int64_t>(10 * sizes.back() + (c - '0'), int64_t{1} << 56);
    inside = digit;
  }
  return sizes;
}

bool same_types(const Graph& graph, const Plan& plan) {
  return std::equal(graph.layers().begin(), graph.layers().end(), plan.steps.begin(), plan.steps.end(),
                    [](const Layer& layer, const PlanStep& step) { return layer.type == step.type; });
}

Error misfit(const std::string& what, const Layer& layer) {
  return Error(what, "plan, layer '" + layer.name + "'", "tune the model again into another file");
}

std::shared_ptr<const Grids> grids_of(const Graph& graph, const Plan& plan) {
  if (plan.grids.empty()) return nullptr;
  std::vector<Grids::Grid> blobs(graph.blobs().size());
  for (const PlanGrid& grid : plan.grids) {
    if (grid.blob >= static_cast<int>(blobs.size())) {
      throw Error("there is no blob " + std::to_string(grid.blob), "plan", "tune the model again into another file");
    }
    Quantization quantization{.scales = {grid.scale}, .zero_points = {grid.zero_point}};
    quantization.least = grid.least;
    quantization.most = grid.most;
    blobs[static_cast<size_t>(grid.blob)] = std::make_shared<const Quantization>(std::move(quantization));
  }
  Learnt learnt;
  for (const PlanInput& input : plan.inputs) learnt.inputs[input.blob] = {input.least, input.most};
  for (const PlanMeans& row : plan.means) learnt.means[row.blob] = row.values;
  for (const PlanCorrection& row : plan.corrected) learnt.corrected.emplace(row.layer, row.form);
  return std::make_shared<const Grids>(graph, std::move(blobs), std::move(learnt));
}

}  // namespace

PlanKey plan_key(const Graph& graph, int threads, std::string calibration) {
  return {graph.structural_hash(), shapes_of(graph), device_fingerprint(), threads, std::move(calibration)};
}

std::string calibration_key(const Graph& graph, const TuneSettings& settings) {
  if (settings.calibration == nullptr) return {};
  std::string text = settings.calibration->grids->text() + graph.weights_identity();
  for (const auto& [blob, seen] : settings.calibration->grids->learnt().inputs) {
    text += " " + exact_number(static_cast<double>(seen.least)) + " " + exact_number(static_cast<double>(seen.most));
  }
  for (const double error : settings.calibration->blob_errors) text += " " + exact_number(error);
  for (const auto& forms : settings.calibration->layer_errors) {
    for (const auto& [form, error] : forms) text += " " + form + exact_number(error);
    text += ",";
  }
  return content_hash(text + "\n" + exact_number(settings.limits.max_error));
}

Plan to_plan(const Graph& graph, const TuneResult& result, const TuneSettings& settings) {
  Plan plan;
  plan.key = plan_key(graph, settings.threads, calibration_key(graph, settings));
  if (result.assignment.grids != nullptr) {
    for (size_t b = 0; b < result.assignment.grids->blobs().size(); ++b) {
      const auto& grid = result.assignment.grids->blobs()[b];
      if (grid == nullptr) continue;
      plan.grids.push_back({static_cast<int>(b), grid->scales[0], grid->zero_points[0], grid->least, grid->most});
    }
    const Learnt& learnt = result.assignment.grids->learnt();
    for (const auto& [blob, seen] : learnt.inputs) plan.inputs.push_back({blob, seen.least, seen.most});
    std::set<int> read;
    for (const auto& [layer, form] : learnt.corrected) {
      plan.corrected.push_back({layer, form});
      read.insert(graph.layers()[static_cast<size_t>(layer)].inputs[0]);
    }
    for (const int blob : read) plan.means.push_back({blob, learnt.means.at(blob)});
  }
  for (size_t l = 0; l < result.layers.size(); ++l) {
    const LayerReport& layer = result.layers[l];
    plan.steps.push_back({static_cast<int>(l), layer.type, layer.descriptor, layer.seconds});
  }
  for (size_t i = 0; i < result.assignment.adapts.size(); ++i) {
    const AdaptChoice& adapt = result.assignment.adapts[i];
    plan.adapts.push_back({adapt.blob, adapt.from.str(), adapt.to.str(), result.adapt_seconds[i]});
  }
  plan.seconds = result.predicted_s;
  plan.lower_bound = result.lower_bound_s;
  plan.proven = result.proven;
  return plan;
}

TuneResult from_plan(const Graph& graph, const Plan& plan) {
  if (!same_types(graph, plan)) {
    throw Error("its layers are not the graph's", "plan",
                "it was made for another model: tune again into another file");
  }
  TuneResult result;
  result.predicted_s = plan.seconds;
  result.lower_bound_s = plan.lower_bound;
  result.proven = plan.proven;
  result.weight_bytes = model_weight_bytes(graph);
  std::vector<RoutineChoice>& choices = result.assignment.layers;
  for (const PlanStep& step : plan.steps) {
    choices.push_back(step.descriptor.empty() ? RoutineChoice{} : find_routine(step.descriptor));
  }
  result.assignment.grids = grids_of(graph, plan);
  const FusedLayers fused(graph, choices, result.assignment.grids.get());
  for (size_t l = 0; l < plan.steps.size(); ++l) {
    const Layer& layer = graph.layers()[l];
    const PlanStep& step = plan.steps[l];
    const RoutineChoice& choice = choices[l];
    if (choice.routine != nullptr) {
      const RoutineInfo& info = choice.routine->info();
      if (!isa_available(info.isa)) throw misfit("this machine lacks " + std::string(isa_name(info.isa)), layer);
      const Problem problem = fused.problem(static_cast<int>(l), plan.key.threads);
      const Refusal refusal = accepts(*choice.routine, problem);
      if (!refusal.accepted()) throw misfit(step.descriptor + " declines: " + refusal.reason(), layer);
      const auto offered = tunings(*choice.routine, problem);
      if (std::find(offered.begin(), offered.end(), choice.tuning) == offered.end()) {
        throw misfit(step.descriptor + " has params that the routine does not offer", layer);
      }
    }
    if (choice.routine != nullptr && !choice.routine->info().view) {
      const Problem problem = fused.problem(static_cast<int>(l), plan.key.threads);
      result.packed_bytes += static_cast<double>(choice.routine->packed_bytes(problem, choice.tuning));
    }
    result.layers.push_back({layer.name, layer.type, step.descriptor, step.seconds, 0, true});
  }
  for (const PlanAdapt& adapt : plan.adapts) {
    if (adapt.blob < 0 || adapt.blob >= static_cast<int>(graph.blobs().size())) {
      throw Error("there is no blob " + std::to_string(adapt.blob), "plan", "tune the model again into another file");
    }
    result.assignment.adapts.push_back({adapt.blob, parse_schema(adapt.from), parse_schema(adapt.to)});
    result.adapt_seconds.push_back(adapt.seconds);
  }
  note_floats(graph, plan.key.threads, result);
  return result;
}

bool is_for_weights(const Plan& plan, const Graph& graph) {
  if (plan.grids.empty()) return true;
  const std::string weights = graph.weights_identity();
  return std::any_of(plan.proven.begin(), plan.proven.end(),
                     [&](const ProvenError& proven) { return proven.weights == weights; });
}

namespace {

double error_on(const Plan& plan, const std::string& weights) {
  for (const ProvenError& proven : plan.proven) {
    if (proven.weights == weights) return proven.error;
  }
  return INFINITY;
}

// Of several that are within the limit the fastest one.
const Plan* made_for_weights(const PlanFile& file, const Graph& graph, const PlanKey& key, double max_error) {
  const Plan* found = nullptr;
  std::string weights;
  for (const Plan& plan : file.plans()) {
    PlanKey plain = plan.key;
    plain.calibration.clear();
    if (plan.grids.empty() || plain != key) continue;
    if (weights.empty()) weights = graph.weights_identity();
    if (error_on(plan, weights) > max_error) continue;
    if (found == nullptr || plan.seconds < found->seconds) found = &plan;
  }
  return found;
}

}  // namespace

const Plan* find_plan(const PlanFile& file, const Graph& graph, const TuneSettings& settings, const std::string& path,
                      bool strict) {
  const PlanKey key = plan_key(graph, settings.threads, calibration_key(graph, settings));
  if (settings.calibration == nullptr) {
    if (const Plan* plan = made_for_weights(file, graph, key, settings.limits.max_error)) return plan;
  }
  if (const Plan* plan = file.find(key)) return plan;
  bool same_model = file.plans().empty();
  for (const Plan& plan : file.plans()) {
    same_model = same_model || same_types(graph, plan);
    if (plan.key.graph != key.graph) continue;
    if (plan.key.device != key.device) {
      throw Error("the plan was made on device '" + plan.key.device + "', this is '" + key.device + "'", path,
                  "give another path, or remove the file to tune again");
    }
  }
  if (!same_model && strict) {
    throw Error("holds no plan for this model", path, "give another path, or remove the file to tune again");
  }
  return nullptr;
}

const Plan* nearest_plan(const PlanFile& file, const Graph& graph, int threads) {
  const PlanKey key = plan_key(graph, threads, {});
  std::vector<const Plan*> plans;
  std::vector<Sizes> known;
  for (const Plan& plan : file.plans()) {
    if (plan.key.device != key.device || plan.key.threads != threads || !same_types(graph, plan)) continue;
    if (!plan.grids.empty()) continue;  // made for one set of weights
    plans.push_back(&plan);
    known.push_back(sizes_in(plan.key.shapes));
  }
  const auto nearest = nearest_shapes(sizes_in(key.shapes), known);
  return nearest ? plans[*nearest] : nullptr;
}

std::vector<std::string> descriptors(const Plan& plan) {
  std::vector<std::string> texts;
  for (const PlanStep& step : plan.steps) texts.push_back(step.descriptor);
  return texts;
}

}  // namespace softneuro
