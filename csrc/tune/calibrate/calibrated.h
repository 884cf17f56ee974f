// What files of ranges say of graphs.
#pragma once

#include <memory>
#include <string>

#include "graph/graph.h"
#include "tune/options.h"
#include "tune/tuner.h"

namespace softneuro {

// Hash of what graphs of one model have in common in all shapes: of what plans depend on.
std::string model_key(const Graph& graph);
// The same of what values depend on: with attributes of layers without weights, but for those that follow from shapes.
std::string range_key(const Graph& graph);

// The option `calibration`.
struct CalibrationSource {
  std::string path;       // of the file; empty: there is none
  int64_t batches = 0;    // that are to be observed first if the file knows nothing of a model; 0: none
  bool collects = false;  // every call is observed, for the file
};
// "", a path, "online:N", or "collect:" and a path. Throws Error.
CalibrationSource parse_calibration(const std::string& text);

// What the file of the option says of a graph; null if nothing. Ranges of other weights of the model are taken, with a
// warning, where results are compared with the host's: weights have grids by their own values whatever the ranges.
// Throws Error if the file is none of ranges.
std::shared_ptr<const Calibration> calibration_of(const Graph& graph, const Options& options);

}  // namespace softneuro
