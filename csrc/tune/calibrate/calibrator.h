// Learns on real data which values a model's blobs have, and what it does to the outputs if one of them is rounded to
// its grid, or the weights of one layer.
#pragma once

#include <memory>
#include <vector>

#include "graph/grids.h"
#include "net/net.h"
#include "tune/calibrate/blob_statistics.h"
#include "tune/calibrate/channel_means.h"
#include "tune/calibrate/fit.h"
#include "tune/calibrate/range_table.h"
#include "tune/tuner.h"

namespace softneuro {

// The grid of each open blob whose range is known.
// `corrects` says whether biases follow from the section, too, which holds for the very weights.
std::shared_ptr<const Grids> grids_of(const Graph& graph, const RangeSection& section, bool corrects = true);

// Not thread-safe: one run at a time.
class Calibrator {
 public:
  // `settings`: how its nets are planned; nothing is measured for that.
  Calibrator(TuneSettings settings, CostDb& db);
  ~Calibrator();

  // A net that computes the graph, observing its blobs: of the model's, in whatever shapes. It must not outlive the
  // calibrator.
  std::shared_ptr<const Net> watching(const Graph& graph);
  // After each run of such a net: the inputs that it has seen are a batch, of which some are kept.
  void end_batch();
  int64_t batches() const { return batches_; }
  int threads() const { return settings_.threads; }

  // Ranges by the method, and errors by running what was kept, for so many seconds or until all has run once: what was
  // not reached counts as the worst that was. Throws Error if nothing was observed.
  RangeSection finish(const FitSettings& method, double seconds, const ParallelFor& parallel_for,
                      const Progress& progress = {});

 private:
  struct Shaped;
  struct Sample;
  class Errors;

  TuneSettings settings_;
  CostDb& db_;
  std::vector<std::unique_ptr<Shaped>> shapes_;
  std::vector<BlobStatistics> statistics_;  // by blob
  std::vector<ChannelMeans> means_;
  std::vector<Sample> samples_;
  std::unique_ptr<Sample> pending_;
  size_t kept_bytes_ = 0;
  int64_t batches_ = 0;
};

}  // namespace softneuro
