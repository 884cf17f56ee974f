// Fetching what a host reads after a run while the run's last steps compute.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cache_lines.h"
#include "base/threads.h"

namespace softneuro {

// Asks for lines that are to be read after a run, some of them in each of its last steps: all at once they keep a core
// waiting as long as a small layer takes. The leader asks, as its own caches are where they are wanted, and in its own
// task, so that others can take over some of that step's work.
class ReadAhead {
 public:
  ReadAhead(std::span<const CacheLines* const> lines, size_t steps) : lines_(lines), steps_(steps) {
    for (const CacheLines* some : lines) count_ += some->size();
  }

  void begin(size_t step) {
    const size_t first = std::min(steps_ - steps_ / 3, steps_ - 1);
    due_ = step < first ? 0 : count_ * (step + 1 - first) / (steps_ - first);
    if (!within_) fetch();
  }
  // What is due by the step that has begun.
  void fetch() {
    size_t before = 0;
    for (const CacheLines* some : lines_) {
      const size_t end = std::clamp(due_, before, before + some->size()) - before;
      const size_t begin = std::clamp(done_, before, before + some->size()) - before;
      some->fetch_part(std::min(begin, end), end);
      before += some->size();
    }
    done_ = std::max(done_, due_);
  }

  // This, with the fetching in it.
  ParallelFor within(const ParallelFor& parallel_for) {
    if (count_ == 0 || parallel_for.threads() <= 1) return parallel_for;
    inner_ = parallel_for;
    within_ = true;
    return {&run, this, parallel_for.threads()};
  }

 private:
  static void run(void* self, int64_t tasks, ParallelFor::Task task, void* arg) {
    ReadAhead& ahead = *static_cast<ReadAhead*>(self);
    ahead.inner_(tasks, [&](int64_t index) {
      if (index == 0) ahead.fetch();  // a team's leader begins with this one
      task(arg, index);
    });
  }

  std::span<const CacheLines* const> lines_;
  size_t steps_, count_ = 0, due_ = 0, done_ = 0;
  bool within_ = false;
  ParallelFor inner_;
};

}  // namespace softneuro
