// From a graph to a plan: enumerate, profile, solve, refine in the net, and time the best few plans as wholes.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/net.h"
#include "tune/measure/timekeeper.h"
#include "tune/options.h"
#include "tune/plan/plan.h"
#include "tune/records/cost_db.h"
#include "tune/search/candidates.h"

namespace softneuro {

// What is known of a graph's blobs by data that it was calibrated with.
struct Calibration {
  std::shared_ptr<const Grids> grids;
  // Relative L2 errors of the worst output where nothing else is rounded: by blob, where it alone lies on its grid, and
  // by layer and form, where that is all that is not in floats, but for grids of its blobs.
  std::vector<double> blob_errors;
  std::vector<std::map<std::string, double>> layer_errors;
  bool stale = false;  // the ranges are of other weights
};
// Of what nobody has measured: more than any limit, and prices stay finite.
inline constexpr double unknown_error = 1e3;

struct TuneSettings {
  SearchLimits limits;
  TuneMode mode = TuneMode::profile;
  double time_budget_s = 10;  // for all of tuning; what is left unmeasured then is guessed
  int threads = 1;
  int integrated_plans = 3;  // best ones by the routines' own times that are timed in their nets; below 2 none is
  MemoryLimit max_memory = {};
  Pins pins = {};
  std::shared_ptr<const Calibration> calibration = nullptr;  // null: blobs of reals are never stored in bytes
};

struct LayerReport {
  std::string name, type, descriptor;
  double seconds = 0;  // of the routine alone
  double regret = 0;   // seconds that the whole plan loses if this routine is forbidden; infinite if it is the only one
  bool measured = false;
  std::string in_floats = {};  // why it computes with floats what is quantized; empty where it does not
  // Seconds of the fastest routines measured for the layer alone: of those that make use of zeros in weights, and of
  // the others.
  double sparse_s = std::numeric_limits<double>::infinity(), dense_s = std::numeric_limits<double>::infinity();
};

struct TuneResult {
  Assignment assignment;
  std::vector<ProvenError> proven;    // empty for a plan of exact routines
  std::vector<LayerReport> layers;    // by layer index
  std::vector<double> adapt_seconds;  // by assignment.adapts
  double predicted_s = 0;             // sum of routines and adapts
  // No plan with as little of what has a price (errors, packed bytes, bytes passed on) takes less; equals predicted_s
  // if exact and not overruled.
  double lower_bound_s = 0;
  bool exact = false;
  // Seconds of the best plan by layers' own times, and of the best that makes no use of zeros in weights; 0 if not
  // known.
  double best_s = 0, dense_s = 0;
  double weight_bytes = 0, packed_bytes = 0;        // of the graph; of the plan as its routines foretell them
  double peak_bytes = 0;                            // of the plan (NetStats::peak_bytes()); 0 where nobody asked
  bool memory_limited = false, memory_fits = true;  // whether max_memory mattered, and whether any plan keeps to it
  double integrated_s = 0;                          // the chosen plan timed as a whole; 0 if it was not
  double foretold_error = 0;  // of a plan with forms: relative L2 of the worst output on the calibration's data
  bool carried = false;       // from other shapes, nothing measured
  int candidates = 0, measured = 0, recalled = 0,
      guessed = 0;  // distinct (layer signature, descriptor) pairs and adapts
  double tuning_s = 0;
  std::vector<StageTime> stages;  // of it
};

// Called now and then with work done and in all, in the same arbitrary unit.
using Progress = std::function<void(int done, int total)>;

// Throws Error if a layer has no candidate. Deterministic for one database when nothing has to be measured.
TuneResult tune(const Graph& graph, const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                const Progress& progress = {});

// A plan made for another shape of the same model, carried over: each layer keeps its descriptor where the routine
// accepts the new shape. Measures nothing. Throws Error if the numbers of layers differ.
TuneResult carry_over(const Graph& graph, const std::vector<std::string>& descriptors, const TuneSettings& settings);

}  // namespace softneuro
