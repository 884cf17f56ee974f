// parallel_for as the core sees it: injected by whoever runs us, so that the host's pool is the only pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

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

  template <typename Fn>
  void operator()(int64_t tasks, Fn&& fn) const {
    if (tasks <= 1 || impl_ == nullptr) {
      for (int64_t task = 0; task < tasks; ++task) fn(task);
      return;
    }
    using Body = std::remove_reference_t<Fn>;
    impl_(
        pool_, tasks, [](void* arg, int64_t task) { (*static_cast<Body*>(arg))(task); },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }

 private:
  Impl impl_ = nullptr;
  void* pool_ = nullptr;
  int threads_ = 1;
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
