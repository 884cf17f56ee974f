// Running a graph's nets on inputs of no meaning, to time them or to compare what they give.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/error_measure.h"
#include "tune/measure/timekeeper.h"
#include "tune/tuner.h"

namespace softneuro {

// A tensor as a graph's border has it.
struct HostTensor {
  TensorDesc desc;
  Schema schema;
  AlignedBuffer memory;

  HostTensor(TensorDesc what, const Schema& how);
  // Sets each element to next(), a real, rounded to what the type holds.
  void fill(const std::function<float()>& next);
  // As the numbers that they mean.
  Elements elements() const;
};
using Tensors = std::vector<HostTensor>;  // by input or output

// What it takes to run plans' nets, and to remember what came of it.
struct Trials {
  const TuneSettings& settings;
  CostDb& db;
  const ParallelFor& parallel_for;
  PackedCache& cache;
  Timekeeper& timekeeper;
  double most_held;  // bytes
  mutable std::vector<PackedCache::Item> held = {};

  // Where a step of the host refuses inputs of no meaning, its results are zeros.
  std::shared_ptr<const Net> prepare(const Graph& graph, const Assignment& plan) const;
  // Keeps the packed weights of all nets that there are now, for as long as this is there: plans differ in few layers.
  // Not if they are much more than the model's weights.
  void hold_packings() const;
  bool may_measure() const { return settings.mode == TuneMode::profile; }
};

// Whether inputs of integers are to be zeros: a step of the host may take them for places in something, which begin
// there.
bool zero_integers(const Graph& graph, const TensorDesc& desc);

class Trial {
 public:
  explicit Trial(const Graph& graph);  // every input 0.5
  Trial(const Graph& graph, Tensors inputs);
  double run(const Net& net, const ParallelFor& parallel_for);  // seconds
  std::span<const void* const> inputs() const { return in_; }
  std::span<void* const> outputs() const { return out_; }
  Tensors take_outputs() { return std::move(outputs_); }  // of the last run

 private:
  Tensors inputs_, outputs_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
};

}  // namespace softneuro
