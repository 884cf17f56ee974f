#include "tune/plan/planner.h"

#include <filesystem>
#include <mutex>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "tune/calibrate/calibrated.h"
#include "tune/measure/unpacked.h"
#include "tune/plan/plan_error.h"
#include "tune/plan/plan_file.h"
#include "tune/plan/plan_graph.h"
#include "tune/search/pinned.h"

namespace softneuro {
namespace {

// Plan files of which this process has used or made a part. Only of others is it an error to have nothing for a graph:
// a model of several graphs comes to its file piece by piece.
class FilesInUse {
 public:
  bool has(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return paths_.count(std::filesystem::weakly_canonical(path).string()) != 0;
  }
  void add(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.insert(std::filesystem::weakly_canonical(path).string());
  }

 private:
  std::mutex mutex_;
  std::set<std::string> paths_;
};

FilesInUse& files_in_use() {
  static auto* files = new FilesInUse;
  return *files;
}

// Runs what deals with a plan file.
template <typename Fn>
auto with_file(Fn&& fn) {
  try {
    return fn();
  } catch (const Error& error) {
    throw PlanFileError(error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    throw PlanFileError(error.what(), "plan");
  }
}

PlanFile read_file(const std::string& path) {
  return !path.empty() && std::filesystem::exists(path) ? load_plans(path) : PlanFile();
}

std::optional<TuneResult> find_in(const PlanFile& file, const Graph& graph, const TuneSettings& settings,
                                  const std::string& path) {
  if (path.empty()) return std::nullopt;
  const Plan* known = find_plan(file, graph, settings, path, !files_in_use().has(path));
  if (known == nullptr) return std::nullopt;
  files_in_use().add(path);
  TuneResult plan = from_plan(graph, *known);
  if (const auto reason = misses(graph, plan.assignment, settings)) {
    log_warning("plan '" + path + "': " + *reason + ": it is chosen anew");
    return std::nullopt;
  }
  return plan;
}

}  // namespace

TuneSettings tune_settings(const Graph& graph, const Options& options, int threads) {
  TuneSettings settings;
  settings.limits = {options.schemas, options.max_error, options.strict_nonfinite};
  settings.mode = options.tune;
  settings.threads = threads;
  settings.time_budget_s = options.time_budget_s;
  settings.max_memory = options.max_memory;
  settings.calibration = calibration_of(graph, options);
  settings.pins = options.pins;
  return settings;
}

std::optional<std::string> misses(const Graph& graph, const Assignment& plan, const TuneSettings& settings) {
  if (const auto reason = not_as_asked(graph, plan, settings)) return reason;
  if (!settings.max_memory.bounds_peak()) return {};
  const double limit = settings.max_memory.bytes(model_weight_bytes(graph));
  const auto peak = static_cast<double>(foretold_peak(graph, plan, settings.threads));
  if (peak <= limit) return {};
  return "its peak of " + exact_number(peak) + " bytes is above max_memory=" + settings.max_memory.str();
}

TuneResult make_plan(const Graph& graph, const Options& options, int threads, CostDb& db,
                     const ParallelFor& parallel_for, const Progress& progress) {
  const TuneSettings settings = tune_settings(graph, options, threads);
  warn_of_unmatched(graph, settings.pins);
  if (options.plan.empty()) return tune(graph, settings, db, parallel_for, progress);
  const PlanFile file = with_file([&] { return read_file(options.plan); });
  if (auto known = with_file([&] { return find_in(file, graph, settings, options.plan); })) {
    return bearable(graph, std::move(*known), settings, db, parallel_for);
  }
  const Plan* near = options.tune == TuneMode::profile || settings.calibration != nullptr
                         ? nullptr
                         : nearest_plan(file, graph, threads);
  TuneResult result;
  if (near != nullptr) {
    result = carry_over(graph, descriptors(*near), settings);
    result.proven = near->proven;
    result = bearable(graph, std::move(result), settings, db, parallel_for);
  } else {
    result = tune(graph, settings, db, parallel_for, progress);
  }
  save_plan(graph, result, settings, options.plan);
  return result;
}

std::optional<TuneResult> load_plan(const Graph& graph, const Options& options, int threads) {
  return with_file(
      [&] { return find_in(read_file(options.plan), graph, tune_settings(graph, options, threads), options.plan); });
}

void save_plan(const Graph& graph, const TuneResult& plan, const TuneSettings& settings, const std::string& path) {
  with_file([&] {
    PlanFile file;
    file.set(to_plan(graph, plan, settings));
    save_plans(file, path);
    files_in_use().add(path);
  });
}

std::vector<std::string> descriptors(const TuneResult& plan) {
  std::vector<std::string> texts;
  for (const LayerReport& layer : plan.layers) texts.push_back(layer.descriptor);
  return texts;
}

}  // namespace softneuro
