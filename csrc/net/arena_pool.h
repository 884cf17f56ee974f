// Memory of runs, shared by nets that seldom run at once: those of one region, whatever their shapes.
#pragma once

#include <cstddef>
#include <vector>

#include "base/arena.h"
#include "base/fork_mutex.h"

namespace softneuro {

// Thread-safe. As many blocks exist as runs at once, each as large as the largest run so far has asked for.
class ArenaPool {
 public:
  ArenaPool();
  // At least so many bytes, of any content. Throws Error when memory is short.
  AlignedBuffer take(size_t bytes);
  void give_back(AlignedBuffer buffer) noexcept;

 private:
  static constexpr size_t max_idle = 8;  // blocks kept for the next run

  ForkMutex mutex_;
  std::vector<AlignedBuffer> idle_;  // the last one used at the end
  size_t largest_ = 0;
};

}  // namespace softneuro
