// Plans of this process by what graphs of one model have in common, whatever their shapes.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/fork_mutex.h"
#include "tune/plan/near_shapes.h"
#include "tune/plan/planner.h"

namespace softneuro {

// A plan with all that it takes to use it for a graph of other shapes.
struct KnownPlan {
  std::string graph_hash;
  std::string patterns;  // patterns_of() the graph
  TuneSettings settings;
  TuneResult result;
};
using SharedPlan = std::shared_ptr<const KnownPlan>;

// A host compiles a model again for another batch or image size: that is no reason to tune again.
class PlanPool {
 public:
  static PlanPool& global();
  void add(const std::string& structure, Sizes sizes, SharedPlan plan);
  // The plan whose shapes differ least; null if there is none of this structure.
  SharedPlan nearest(const std::string& structure, const Sizes& sizes) const;

 private:
  static constexpr size_t capacity = 512;
  struct Item {
    std::string structure;
    Sizes sizes;
    SharedPlan plan;
  };

  mutable ForkMutex mutex_;
  std::list<Item> items_;  // the newest at the end
};

// Which weights of a graph have many zeros, how many and in which pattern; empty if none has.
std::string patterns_of(const Graph& graph);
// Hash of what graphs of one model have in common, and of what else a plan depends on.
std::string structure_of(const Graph& graph, const std::string& patterns, const Options& options, int threads);
// All sizes of the graph's inputs.
Sizes sizes_of(const Graph& graph);

// A plan for a graph under the options: the plan file's own, or one carried over from other shapes of the model; null
// if there is neither. Throws PlanFileError. `pruned`: whether one will do that was made for weights with other zeros.
SharedPlan near_plan(const Graph& graph, const Options& options, int threads, bool pruned = false);
// A new one, which may mean measuring, unless the plan file has it. Throws PlanFileError, or Error if a layer cannot be
// run at all.
SharedPlan new_plan(const Graph& graph, const Options& options, int threads, const Progress& progress);
// The plan or, where its error on the graph's weights is not known to be bearable, what bearable() makes of it.
SharedPlan bearable_plan(const Graph& graph, SharedPlan plan, const Options& options, int threads);
// What the calibration foretells of a plan with grids of its own; nothing where there is none of these weights. It
// holds for real inputs, and made-up ones do not show it.
std::optional<double> foretold_error(const KnownPlan& plan);
// Whether a plan has no grids, or those for just these weights.
bool has_grids_for(const KnownPlan& plan, const Graph& graph);
// Names everything that was chosen: equal for plans that run every layer of equally pruned weights alike.
std::string choices_of(const KnownPlan& plan);

}  // namespace softneuro
