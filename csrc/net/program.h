// A graph turned into steps over planned memory: what Net executes. Internal to net/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "net/memory_plan.h"
#include "net/net.h"

namespace softneuro {

// A blob in one schema.
struct Value {
  std::string name;
  TensorDesc desc;
  Schema schema;
  Strides strides{};
  int input = -1;  // graph input number: the caller's memory
  const void* constant = nullptr;
  bool part = false;  // of another value, or of the caller's output: what a copy fills
  MemoryPlace place;
};

struct Step {
  int layer = -1;  // index in the graph; -1 for adapts and the copies of outputs
  std::string name, descriptor;
  std::unique_ptr<const Prepared> prepared;
  std::vector<int> in, outs;  // values
  size_t workspace = 0;       // of what its tasks share: offset in the arena
};

struct Program {
  std::vector<TensorDesc> input_descs, output_descs;
  std::vector<Schema> input_schemas, output_schemas;
  std::vector<int> updated_inputs;  // by output: the graph input whose memory it is, -1: none
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<StepMemory> planned;              // by step of the memory plan, blobs not counted yet
  std::vector<ConstantData::Memory> constants;  // keep alive
  std::vector<AlignedBuffer> adapted_constants;
  std::vector<std::shared_ptr<const Packed>> packings;  // each once
  NetStats stats;
  std::vector<size_t> arenas;  // bytes by platform
  // Each task has memory for itself, the same in all steps: its offset in the arena, and bytes from task to task.
  size_t tasks = 0, task_stride = 0;
  int threads = 1;
};

Program build_program(const Graph& graph, const Assignment& assignment, int threads, PackedCache& cache);

}  // namespace softneuro
