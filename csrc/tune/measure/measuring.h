// Finds the costs of distinct layers and conversions: recalled, measured, or forecast where that will do.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tune/measure/forecast.h"
#include "tune/measure/profiler.h"
#include "tune/measure/work.h"
#include "tune/records/cost_keys.h"

namespace softneuro {

class Measuring {
 public:
  // `graph`: its structural hash.
  Measuring(Work& work, std::string graph, const TuneSettings& settings, CostDb& db, CacheState cache_state,
            Timekeeper& timekeeper, const Progress& progress);

  // What the database knows. Forecasts of a run on this graph with as much time count, so that a later one neither
  // measures nor changes its mind.
  void recall();
  bool is_missing() const { return total_ > 0; }

  // Conversions, and layers by what they are likely to take in all of the graph, longest first, so that these tell
  // about those like them. What cannot win by that is left out, and what time is lacking for is forecast.
  void measure(Profiler& profiler);
  // Measures candidates that were forecast only; false if there is nothing to do or no time.
  bool confirm(Profiler& profiler, std::span<const std::pair<size_t, size_t>> candidates);
  // Brings what was measured to one pace and records everything.
  void finish(Profiler& profiler);

  void log() const;
  void count(GraphCosts& costs) const;

 private:
  std::string signature_of(size_t item, const Candidate& candidate) const;
  std::string key_of(const ProblemClass& cls, const Candidate& candidate) const;
  bool recall(size_t item, Candidate& candidate);
  void note_forecast(size_t item, const Candidate& candidate, double budget);
  bool is_fusion(size_t item) const { return !work_.instead[item].empty(); }
  double best_seconds(size_t item, bool measured) const;
  double instead_seconds(size_t item, bool measured) const;
  double weight(size_t item) const;
  bool loses_as_others(size_t item);
  double left() const;
  void measure_adapts(Profiler& profiler);
  void measure_layer(Profiler& profiler, size_t item, const Profiler::Effort& effort);
  void forget_known(size_t item);
  std::vector<Candidate*> leave_out(size_t item);
  void sift(Profiler& profiler, size_t item, const Problem& problem, double seconds, std::vector<Candidate*>& out);
  bool measure_part(Profiler& profiler, size_t item, const Problem& part, const Profiler::Effort& effort);
  void expect(size_t item, Candidate& candidate, double budget, double best);
  void tell();

  Work& work_;
  std::string graph_;
  const TuneSettings& settings_;
  Ledger ledger_;
  CacheState cache_state_;
  Timekeeper& timekeeper_;
  const Progress& progress_;
  Forecast forecast_;
  std::vector<std::vector<Candidate*>> missing_, measured_, known_;  // by layer: known_ were recalled
  std::vector<Work::AdaptItem*> missing_adapts_;
  int total_ = 0, done_ = 0, candidates_ = 0, measured_count_ = 0, recalled_ = 0;
};

}  // namespace softneuro
