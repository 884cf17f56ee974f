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

  size_t size() const { return lines_.size(); }

  // Prefetching never faults: what was there may be gone.
  void fetch() const { fetch_part(0, lines_.size()); }
  void fetch_part(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) __builtin_prefetch(reinterpret_cast<const void*>(lines_[i] * line));
  }

 private:
  static constexpr size_t line = 64;
  std::vector<uintptr_t> lines_;  // numbers
};

}  // namespace softneuro
