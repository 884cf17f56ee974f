// Plans within max_memory, where that bounds all that there is during a run.
//
// What a plan has at its peak is the sum of its packed weights, which add up layer by layer, and of the arena, which
// is as large as the fullest step needs. By duality a bound on the sum of both is a price on packed bytes, and the same
// price on what steps have, shared out among them: by and by to those that have proven the fullest. So bytes of the
// weights and of the fullest steps are one measure, bounded by bisection. What it does not count, as blobs that wait
// for a later layer, is known once a plan's memory has been planned, and is taken off the bound for the next one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tune/measure/costs.h"
#include "tune/measure/unpacked.h"
#include "tune/search/dprs_labels.h"
#include "tune/search/memory_limit.h"

namespace softneuro {

class PeakLimit {
 public:
  PeakLimit(const Graph& graph, const GraphCosts& costs, const TuneSettings& settings);

  // Whether it is the peak that is bounded, else packed weights alone.
  bool bounds_peak() const { return settings_.max_memory.bounds_peak(); }
  // As solve_within(). If no plan was found that keeps to the limit, the one with the smallest peak that was seen.
  // lower_bound holds without the limit.
  LimitedPlans solve(const Objective& objective, int k);
  bool fits(const DprsResult& plan) { return (bounds_peak() ? peak(plan) : packed_.of(plan)) <= limit_; }
  // Where packed weights are what is bounded.
  std::optional<Bound> packed_bound() const;
  double peak(const DprsResult& plan) { return static_cast<double>(forecast(plan).stats.peak_bytes()); }
  // What a user is told where no plan keeps to the limit.
  std::string complaint(const DprsResult& plan);

 private:
  const MemoryForecast& forecast(const DprsResult& plan);
  void note_fullest(const DprsResult& plan);
  Measure counted();
  const WorkspaceSize& workspace(const Problem& problem, const Candidate& candidate, int layer);
  double step_bytes(const Problem& problem, const Candidate& candidate, int layer, double full, double busy);
  void look_for(const Objective& objective, const DprsResult& free, int k, LimitedPlans& found);

  const Graph& graph_;
  const GraphCosts& costs_;
  const TuneSettings& settings_;
  double limit_;  // bytes
  Measure packed_;
  Unpacked cache_;
  std::map<std::string, MemoryForecast> forecasts_;  // by plan_text()
  // By layer, how often its step has proven the fullest, and the one whose tasks have most for themselves.
  std::map<int, double> fullest_, busiest_;
  double seen_ = 0;  // plans whose fullest steps are counted there
  // Of the last plan: what is not counted by the measure. Later searches begin there.
  double uncounted_ = 0;
  std::map<std::pair<int, std::string>, WorkspaceSize> workspaces_;  // by last layer and descriptor
};

}  // namespace softneuro
