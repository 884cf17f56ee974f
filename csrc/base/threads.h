// parallel_for as the core sees it: injected by whoever runs us, so that the host's pool is the only pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/denormals.h"

namespace softneuro {

// A non-owning handle to a pool. Tasks may run in any order, even serially, and never wait for each other; scratch
// belongs to the task index. `threads` is how many may run at once: routines deal work in that many tasks or a small
// multiple.
class ParallelFor {
 public:
  using Task = void (*)(void* arg, int64_t task);
  using Impl = void (*)(void* pool, int64_t tasks, Task task, void* arg);

  ParallelFor() = default;  // serial
  ParallelFor(Impl impl, void* pool, int threads) : impl_(impl), pool_(pool), threads_(threads) {}

  int threads() const { return threads_; }
  // The same pool, with tasks for which denormals are zero; see base/denormals.h.
  ParallelFor flushing_denormals() const {
    ParallelFor flushing = *this;
    flushing.flushes_denormals_ = true;
    return flushing;
  }
  bool flushes_denormals() const { return flushes_denormals_; }

  template <typename Fn>
  void operator()(int64_t tasks, Fn&& fn) const {
    if (tasks <= 1 || impl_ == nullptr) {
      const FlushedDenormals flushed(flushes_denormals_);
      for (int64_t task = 0; task < tasks; ++task) fn(task);
      return;
    }
    using Body = std::remove_reference_t<Fn>;
    deal(
        tasks, [](void* arg, int64_t task) { (*static_cast<Body*>(arg))(task); },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }

 private:
  void deal(int64_t tasks, Task task, void* arg) const {
    if (!flushes_denormals_) return impl_(pool_, tasks, task, arg);
    std::pair<Task, void*> own{task, arg};
    const Task flushing = [](void* both, int64_t index) {
      const FlushedDenormals flushed(true);
      const auto& [own_task, own_arg] = *static_cast<std::pair<Task, void*>*>(both);
      own_task(own_arg, index);
    };
    impl_(pool_, tasks, flushing, &own);
  }

  Impl impl_ = nullptr;
  void* pool_ = nullptr;
  int threads_ = 1;
  bool flushes_denormals_ = false;
};

// Part `part` of `parts` almost equal ranges of [0, total).
struct Range {
  int64_t begin, end;
};
inline Range split_range(int64_t total, int64_t parts, int64_t part) {
  const int64_t base = total / parts, extra = total % parts;
  const int64_t begin = part * base + std::min(part, extra);
  return {begin, begin + base + (part < extra ? 1 : 0)};
}

// A small pool for bare use: the caller works too, workers spin briefly and then sleep. Threads start on first use and
// are started again in a forked child.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // in all, the caller's own included
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ParallelFor parallel_for();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The process's own pool of so many threads, for bare use and for tuning where the host's cannot be had.
ParallelFor own_pool(int threads);

}  // namespace softneuro
