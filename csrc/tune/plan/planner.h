// What every door asks for: a plan under its options, from the plan file, the cost database or by measuring.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "tune/options.h"
#include "tune/tuner.h"

namespace softneuro {

// The file of the option `plan` or `calibration` cannot be used: an error of the caller, never a reason to leave a
// region to the host.
class PlanFileError : public Error {
 public:
  using Error::Error;
};

// With what a file of ranges says of the graph, if the options have one.
TuneSettings tune_settings(const Graph& graph, const Options& options, int threads);

// A plan under the options. With options.plan, a plan of that file for this very graph is taken as it is, and any other
// is added to the file. One that is not as options.keep, fixed and max_memory ask for is chosen anew, which is logged,
// and replaced in the file. Where options.tune forbids measuring, one of the file for other shapes is carried over.
// `parallel_for` is to measure with. Throws PlanFileError, or Error if a layer cannot be run at all.
// A plan that a file has for other weights is the one that bearable() makes of it (plan_error.h).
TuneResult make_plan(const Graph& graph, const Options& options, int threads, CostDb& db,
                     const ParallelFor& parallel_for, const Progress& progress = {});

// Why a plan is not what the options keep, fixed and max_memory ask for; nothing if it is.
std::optional<std::string> misses(const Graph& graph, const Assignment& plan, const TuneSettings& settings);

// The plan that the file of options.plan has for this very graph, if it is as the options ask. Throws PlanFileError.
std::optional<TuneResult> load_plan(const Graph& graph, const Options& options, int threads);
// Adds a plan to a file. Throws PlanFileError.
void save_plan(const Graph& graph, const TuneResult& plan, const TuneSettings& settings, const std::string& path);

// The descriptors of a plan by layer, as carry_over() takes them.
std::vector<std::string> descriptors(const TuneResult& plan);

}  // namespace softneuro
