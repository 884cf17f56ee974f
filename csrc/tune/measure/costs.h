// Costs of one graph's candidates and conversions: recalled from the database, measured, or guessed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/fusions.h"
#include "tune/measure/profiler.h"
#include "tune/measure/timekeeper.h"
#include "tune/tuner.h"

namespace softneuro {

// One conversion of one blob.
struct AdaptCost {
  const Routine* routine;
  double seconds;
};

// A routine of a fusion: there are several, of other schemas, errors and bytes.
struct FusedCost {
  const Fusion* fusion;
  Candidate candidate;
};

struct GraphCosts {
  std::vector<std::vector<Candidate>> layers;  // by layer; empty for `constant`
  std::vector<Fusion> fusions;                 // of the graph
  std::shared_ptr<const Grids> grids;          // that forms have; null: there are no forms
  std::vector<FusedCost> fused;                // those that a routine accepts
  std::vector<Schema> schemas;                 // every schema that a candidate or the graph's boundary mentions
  // By blob, row-major [from][to] over `schemas`; infinite where no single conversion exists.
  std::vector<std::vector<double>> adapts;
  int candidates = 0, measured = 0, recalled = 0, guessed = 0;

  // The index in `fusions` of what a group of `fused` computes.
  size_t fusion_index(size_t group) const;
  int schema_index(const Schema& schema) const;
};

double model_weight_bytes(const Graph& graph);

GraphCosts find_costs(const Graph& graph, const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                      const Progress& progress, Timekeeper& timekeeper);
// Guesses alone; needs no database.
GraphCosts guess_costs(const Graph& graph, const TuneSettings& settings);

}  // namespace softneuro
