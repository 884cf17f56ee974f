#include "runtime/plans.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/arch.h"
#include "base/text.h"
#include "tune/calibrate/calibrated.h"
#include "tune/plan/carry.h"
#include "tune/plan/plan_error.h"
#include "tune/plan/plan_graph.h"
#include "tune/records/cost_keys.h"
#include "tune/search/pinned.h"
#include "tune/search/solution.h"

namespace softneuro {

PlanPool& PlanPool::global() {
  static auto* pool = new PlanPool;  // never destroyed: doors may prepare while the process ends
  return *pool;
}

void PlanPool::add(const std::string& structure, Sizes sizes, SharedPlan plan) {
  const std::unique_lock lock(mutex_);
  items_.remove_if([&](const Item& item) { return item.structure == structure && item.sizes == sizes; });
  items_.push_back({structure, std::move(sizes), std::move(plan)});
  if (items_.size() > capacity) items_.pop_front();
}

SharedPlan PlanPool::nearest(const std::string& structure, const Sizes& sizes) const {
  const std::shared_lock lock(mutex_);
  std::vector<SharedPlan> plans;
  std::vector<Sizes> known;
  for (const Item& item : items_) {
    if (item.structure != structure) continue;
    plans.push_back(item.plan);
    known.push_back(item.sizes);
  }
  const auto nearest = nearest_shapes(sizes, known);
  return nearest ? plans[*nearest] : nullptr;
}

namespace {

constexpr std::string_view any_patterns = "any";

}  // namespace

std::string patterns_of(const Graph& graph) {
  std::string text;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    for (const auto& [role, value] : graph.layers()[l].weights) {
      const std::string own = value->traits().str();
      if (!own.empty()) text += " " + std::to_string(l) + role + own;
    }
  }
  return text;
}

std::string structure_of(const Graph& graph, const std::string& patterns, const Options& options, int threads) {
  std::string text = patterns + "\n" + model_key(graph) + "\n";
  const auto add = [&](const std::string& more) { text += more + "\n"; };
  add(asked_text(graph, options.pins));  // by which layers they are, not by names
  for (const auto& [name, value] : format_options(options)) {
    if (name != "threads") add(name + "=" + value);
  }
  if (!options.calibration.empty()) add(calibration_key(graph, tune_settings(graph, options, threads)));
  add(std::to_string(threads) + " " + device_fingerprint() + " " + CostDb::default_directory());
  return content_hash(text);
}

Sizes sizes_of(const Graph& graph) {
  Sizes sizes;
  for (const int input : graph.inputs()) {
    const Shape& shape = graph.blob(input).desc.shape;
    sizes.insert(sizes.end(), shape.begin(), shape.end());
  }
  return sizes;
}

namespace {

SharedPlan known(const Graph& graph, const Options& options, int threads, TuneResult result) {
  return std::make_shared<const KnownPlan>(KnownPlan{graph.structural_hash(), patterns_of(graph),
                                                     tune_settings(graph, options, threads), std::move(result)});
}

}  // namespace

SharedPlan near_plan(const Graph& graph, const Options& options, int threads, bool pruned) {
  const std::string patterns = pruned ? std::string(any_patterns) : patterns_of(graph);
  const SharedPlan near = PlanPool::global().nearest(structure_of(graph, patterns, options, threads), sizes_of(graph));
  if (near == nullptr) return nullptr;
  const TuneSettings settings = tune_settings(graph, options, threads);
  if (options.plan.empty()) {
    if (near->graph_hash == graph.structural_hash()) return near;
    return known(graph, options, threads, carry(graph, near->result, settings));
  }
  if (auto own = load_plan(graph, options, threads)) return known(graph, options, threads, std::move(*own));
  SharedPlan carried = known(graph, options, threads, carry(graph, near->result, settings));
  save_plan(graph, carried->result, settings, options.plan);
  return carried;
}

SharedPlan new_plan(const Graph& graph, const Options& options, int threads, const Progress& progress) {
  SharedPlan made =
      known(graph, options, threads, make_plan(graph, options, threads, shared_cost_db(), own_pool(threads), progress));
  if (!made->result.carried) {
    for (const std::string& patterns : {made->patterns, std::string(any_patterns)}) {
      PlanPool::global().add(structure_of(graph, patterns, options, threads), sizes_of(graph), made);
    }
  }
  return made;
}

SharedPlan bearable_plan(const Graph& graph, SharedPlan plan, const Options& options, int threads) {
  const TuneSettings settings = tune_settings(graph, options, threads);
  CostDb& db = shared_cost_db();
  const auto error = known_error(graph, plan->result, settings, db);
  if (error && is_bearable(plan->result, *error, settings)) return plan;
  return known(graph, options, threads, bearable(graph, plan->result, settings, db, own_pool(threads)));
}

std::optional<double> foretold_error(const KnownPlan& plan) {
  const Calibration* calibration = plan.settings.calibration.get();
  if (plan.result.assignment.grids == nullptr || (calibration != nullptr && calibration->stale)) return std::nullopt;
  for (const ProvenError& proven : plan.result.proven) {  // with grids there is one set of weights
    return proven.error;
  }
  return std::nullopt;
}

bool has_grids_for(const KnownPlan& plan, const Graph& graph) {
  if (plan.result.assignment.grids == nullptr) return true;
  const std::string weights = graph.weights_identity();
  return std::any_of(plan.result.proven.begin(), plan.result.proven.end(),
                     [&](const ProvenError& proven) { return proven.weights == weights; });
}

std::string choices_of(const KnownPlan& plan) {
  return content_hash(plan_text(plan.result.assignment) + plan_version(plan.result.assignment) + plan.patterns);
}

}  // namespace softneuro
