// Objects of a host's that a call is about to read one by one, each in lines of its own, which a net's run has driven
// out of the caches: fetched at once they arrive together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace softneuro {

class CacheLines {
 public:
  void add(uintptr_t address, size_t size) {
    if (size == 0) return;
    for (uintptr_t at = address / line, last = (address + size - 1) / line; at <= last; ++at) lines_.push_back(at);
  }

  // Prefetching never faults: what was there may be gone.
  void fetch() const {
    for (const uintptr_t at : lines_) __builtin_prefetch(reinterpret_cast<const void*>(at * line));
  }

 private:
  static constexpr size_t line = 64;
  std::vector<uintptr_t> lines_;  // numbers
};

}  // namespace softneuro
