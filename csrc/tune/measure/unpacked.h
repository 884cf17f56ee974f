// The memory that a plan is going to take, before anything is packed.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "net/net.h"

namespace softneuro {

// In the place of packed weights, memory of their sizes. Only what preparing looks into is packed, by the process's own
// cache. For nets that never run. Not thread-safe.
class Unpacked : public PackedCache {
 public:
  std::shared_ptr<const Packed> get(const RoutineChoice& choice, const Problem& problem) override;
  bool takes_time() const override { return false; }

 private:
  std::map<std::string, std::shared_ptr<const Packed>> known_;
};

// What a net of the plan has (NetStats::peak_bytes()).
size_t foretold_peak(const Graph& graph, const Assignment& plan, int threads);

}  // namespace softneuro
