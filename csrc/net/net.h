// A graph prepared for execution under one assignment of routines: shapes fixed, memory planned, weights packed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "base/threads.h"
#include "graph/graph.h"
#include "graph/grids.h"
#include "layers/contract/registry.h"
#include "net/arena_pool.h"

namespace softneuro {

// A blob wanted in another schema than its producer's: one conversion, shared by all that want it.
struct AdaptChoice {
  int blob = -1;
  Schema from, to;
};

// What a plan says of one graph, resolved against the registry.
struct Assignment {
  // By layer index; `constant` layers need none, and those that a fusion's routine at its last layer covers have none.
  std::vector<RoutineChoice> layers;
  std::vector<AdaptChoice> adapts;  // chains appear in order: from of a later one may be to of an earlier one
  std::shared_ptr<const Grids> grids = nullptr;  // of blobs that are reals in the graph and bytes here
};

// Adds the adapts that the chosen routines and the graph's outputs need and the assignment lacks, in as few steps from
// what there is as may be. Throws Error where there is no way.
void add_needed_adapts(const Graph& graph, Assignment& assignment, int threads);
// Every layer's first accepting routine with its default tuning, and the adapts needed: what runs without a plan.
Assignment default_assignment(const Graph& graph, int threads);

// Packed weights by everything that packing may depend on, the weights' content included: one packing serves all shapes
// of a model, and all models of equal weights. Kept alive by the nets alone. Thread-safe.
class PackedCache {
 public:
  struct Item {
    std::string key;
    std::shared_ptr<const Packed> packed;
  };

  PackedCache();
  virtual ~PackedCache();
  PackedCache(const PackedCache&) = delete;
  PackedCache& operator=(const PackedCache&) = delete;
  // The process's own.
  static PackedCache& shared();
  virtual std::shared_ptr<const Packed> get(const RoutineChoice& choice, const Problem& problem);
  // What get() would give without packing, or even looking at weights; null if there is nothing.
  std::shared_ptr<const Packed> find(const RoutineChoice& choice, const Problem& problem) const;
  // Whether get() may take so long that several threads should ask at once.
  virtual bool takes_time() const { return true; }
  // Equal for packings that are shared. May have to hash weights.
  static std::string key(const RoutineChoice& choice, const Problem& problem);
  size_t bytes() const;  // of packings alive
  // Those alive, to be given to another cache by adopt(), in another process of the same build on the same device.
  std::vector<Item> items() const;
  // Packings made earlier, which the caller keeps alive: they are taken where key and sections are those of what a
  // routine would pack.
  void adopt(const std::vector<Item>& items);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct NetStats {
  size_t arena_bytes = 0;  // planned, workspace included
  size_t blob_bytes = 0;   // sum of all blobs, for comparison
  size_t packed_bytes = 0;
  size_t own_bytes = 0;     // about what the net itself takes: steps, views
  size_t border_bytes = 0;  // inputs and outputs, which whoever runs it has
  double packing_s = 0;     // of preparing it, what packing weights took
  int steps = 0;            // that run; views and in-place concatenations need none
  // What there is during a run, the model's own weights aside.
  size_t peak_bytes() const { return arena_bytes + packed_bytes + own_bytes + border_bytes; }
};

// What there is in the arena while a step of a plan runs.
struct StepMemory {
  int layer = -1;  // index in the graph; of a conversion, the layer that comes next
  size_t blobs = 0;
  size_t workspace = 0;  // that its tasks share
  size_t task = 0;       // that each of them has for itself
};
struct MemoryForecast {
  NetStats stats;
  std::vector<StepMemory> steps;
};

// Where a blob is during a run, in one schema: for reports and for checking the plan.
struct BlobMemory {
  std::string name, schema;
  std::string home;      // "arena", "output 0", "input 0", "constant 12"
  size_t offset, bytes;  // within its home
  int first, last;       // positions of the writer and the last reader among the planned steps, -1: before them
  int content;           // blobs of equal content hold the same data where they overlap
};

// One timed step of a profiled run.
struct StepTime {
  int layer;  // index in the graph, -1 for an adapt
  std::string name, descriptor;
  double seconds;
};

class Net {
 public:
  // Throws Error if the assignment does not fit the graph, or memory is short. `arenas`: where runs take their memory;
  // null: a pool of the net's own.
  static std::shared_ptr<const Net> prepare(const Graph& graph, const Assignment& assignment, int threads,
                                            PackedCache& cache, std::shared_ptr<ArenaPool> arenas = nullptr);
  ~Net();
  // What the same would have, without taking memory for it. Packed weights come from the cache; where one has no more
  // than their sizes (takes_time() is false), nothing is packed.
  static MemoryForecast foresee(const Graph& graph, const Assignment& assignment, int threads, PackedCache& cache);

  // Dense memory of the graph's inputs and outputs in their boundary schemas; outputs must not overlap inputs or each
  // other. One that is declared to be an input's memory (updated_input) is not written elsewhere, its pointer is
  // ignored. Reentrant: any number of threads at once, each takes memory from the pool.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, const ParallelFor& parallel_for) const;
  // The same with a clock around each step; medians over `rounds`.
  std::vector<StepTime> profile(std::span<const void* const> inputs, std::span<void* const> outputs,
                                const ParallelFor& parallel_for, int rounds) const;

  const std::vector<TensorDesc>& input_descs() const;
  const std::vector<TensorDesc>& output_descs() const;
  const std::vector<Schema>& input_schemas() const;
  const std::vector<Schema>& output_schemas() const;
  // The input whose memory an output is, -1 for one with memory of its own.
  int updated_input(size_t output) const;
  const NetStats& stats() const;
  // That it runs on, each once.
  const std::vector<std::shared_ptr<const Packed>>& packings() const;
  std::vector<BlobMemory> memory() const;
  int threads() const;

 private:
  Net();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace softneuro
