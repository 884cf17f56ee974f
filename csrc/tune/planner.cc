#include "tune/planner.h"

#include <filesystem>

#include "tune/plan_graph.h"

namespace softneuro {

TuneSettings tune_settings(const Options& options, int threads) {
  TuneSettings settings;
  settings.limits = {options.schemas, options.max_error, options.strict_nonfinite};
  settings.mode = options.tune;
  settings.threads = threads;
  settings.time_budget_s = options.time_budget_s;
  return settings;
}

TuneResult make_plan(const Graph& graph, const Options& options, int threads, CostDb& db,
                     const ParallelFor& parallel_for, const Progress& progress) {
  const TuneSettings settings = tune_settings(options, threads);
  if (options.plan.empty()) return tune(graph, settings, db, parallel_for, progress);
  try {
    if (std::filesystem::exists(options.plan)) {
      const PlanFile file = PlanFile::load(options.plan);
      if (const Plan* known = find_plan(file, graph, threads, options.plan)) return from_plan(graph, *known);
    }
  } catch (const Error& error) {
    throw PlanFileError(error.what());
  }
  TuneResult result = tune(graph, settings, db, parallel_for, progress);
  try {
    PlanFile file;
    file.set(to_plan(graph, result, threads));
    file.save(options.plan);
  } catch (const Error& error) {
    throw PlanFileError(error.what());
  }
  return result;
}

std::vector<std::string> descriptors(const TuneResult& plan) {
  std::vector<std::string> texts;
  for (const LayerReport& layer : plan.layers) texts.push_back(layer.descriptor);
  return texts;
}

}  // namespace softneuro
