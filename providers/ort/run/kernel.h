// A fused node while sessions run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "providers/ort/abi/abi.h"
#include "providers/ort/run/region.h"

namespace softneuro::ort {

// Where a fused node has a value. Throws Error if it has none of that name.
size_t place_of(const std::vector<std::string>& names, const std::string& name);

// Released by release_kernel(). `inputs` and `outputs`: places at the fused node, by the region's.
OrtNodeComputeInfo* make_kernel(std::shared_ptr<Region> region, std::vector<size_t> inputs,
                                std::vector<size_t> outputs);
void release_kernel(OrtNodeComputeInfo* kernel);

// The session's own pool as the core's, for the length of one kernel call.
class SessionPool {
 public:
  SessionPool(const OrtKernelContext* context, int threads) : context_(context), threads_(threads) {}
  ParallelFor parallel_for() { return {&run, this, threads_}; }
  // Runs it while the pool's other threads sleep. Else they may wait busily on cores that another pool's threads need.
  void alone(const std::function<void()>& work);

 private:
  static void run(void* pool, int64_t tasks, ParallelFor::Task task, void* arg);

  const OrtKernelContext* context_;
  int threads_;
};

}  // namespace softneuro::ort
