// What single roundings do to a graph's outputs, on real inputs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error_measure.h"
#include "graph/grids.h"
#include "tune/calibrate/channel_means.h"
#include "tune/calibrate/range_table.h"
#include "tune/measure/timekeeper.h"
#include "tune/tuner.h"

namespace softneuro {

class RoundingErrors {
 public:
  // By blob, ranges beside that of its grid, to be judged as well.
  using Others = std::map<int, std::vector<ValueRange>>;
  // `means` are by blob, and of all that was observed. The inputs to come are among it.
  RoundingErrors(const Graph& graph, std::shared_ptr<const Grids> grids, Others others,
                 const std::vector<ChannelMeans>& means, const TuneSettings& settings, CostDb& db,
                 const ParallelFor& parallel_for, double seconds);
  ~RoundingErrors();

  // Runs the model on inputs in their natural row-major form, with one rounding after the other; whether there is time
  // for another sample. Of the first one, all that there is time for.
  bool add(const Graph& graph, const std::vector<const void*>& inputs, const Progress& progress);
  // Fills in what the errors of a section's blobs and layers were on all samples together. A blob gets the range that
  // erred least.
  void tell(RangeSection& section) const;

 private:
  // Squares of one rounding's differences, by output.
  using Squares = std::vector<double>;
  struct Runner;
  struct Subject {
    int blob = -1;  // of which that is all, or
    Grids::Grid grid = {};
    std::optional<ValueRange> range = {};  // where it is not that of the section
    int layer = -1;
    std::string form = {};
    double weights = 0;      // relative L2 error of the form's weights
    bool corrected = false;  // with a bias that makes up for its weights
    bool together = false;   // all layers that have the form, and blobs with them where it is of bytes
    Squares squares = {};
    int samples = 0;
  };

  std::optional<double> error_of(const Subject& subject) const;
  // A rounding that there was no time for errs as the worst did: a blob as a blob, and a layer in proportion to its
  // weights' errors.
  double foretold(const Subject& subject) const;

  const std::shared_ptr<const Grids> grids_;
  const std::vector<ChannelMeans>& means_;
  const TuneSettings& settings_;
  CostDb& db_;
  const ParallelFor& parallel_for_;
  double seconds_;
  std::optional<Timekeeper> timekeeper_;  // from the first run on
  std::vector<Subject> subjects_;
  std::vector<std::string> names_;  // by layer
  std::vector<Squares> truths_;     // by sample
  std::unique_ptr<Runner> runner_;
};

}  // namespace softneuro
