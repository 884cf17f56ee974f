// Running a graph's nets on inputs of no meaning, to time them or to compare what they give.
#pragma once

#include <memory>
#include <vector>

#include "tune/tuner.h"

namespace softneuro {

// Row-major memory by input or output.
using Tensors = std::vector<std::vector<float>>;

// What it takes to run plans' nets, and to remember what came of it.
struct Trials {
  const TuneSettings& settings;
  CostDb& db;
  const ParallelFor& parallel_for;
  PackedCache& cache;

  std::shared_ptr<const Net> prepare(const Graph& graph, const Assignment& plan) const {
    return Net::prepare(graph, plan, settings.threads, cache);
  }
  bool may_measure() const { return settings.mode == TuneMode::profile; }
};

class Trial {
 public:
  explicit Trial(const Graph& graph);  // every input 0.5
  Trial(const Graph& graph, Tensors inputs);
  double run(const Net& net, const ParallelFor& parallel_for);  // seconds
  // Net::profile after a run that warms up.
  std::vector<StepTime> profile(const Net& net, const ParallelFor& parallel_for, int rounds);
  const Tensors& outputs() const { return outputs_; }  // of the last run

 private:
  Tensors inputs_, outputs_;
  std::vector<const float*> in_;
  std::vector<float*> out_;
};

}  // namespace softneuro
