// One parallel_for for a whole run: the host's threads are called together once, and a run's many steps are dealt out
// among those that have come.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "base/threads.h"

namespace softneuro {

// A host's parallel_for begins and ends with a meeting of all its threads. Met for every step of a net, these meetings
// are much of what a small net takes, and where another process holds a core each of them lasts until the scheduler
// relents. In a team they meet once: one thread leads and runs the body, and whoever else has arrived takes tasks of
// the body's steps, its own share first and then what others have not begun. A step waits for tasks that were begun,
// never for threads that have not come; those that wait for a member's core are sent to another.
class Team {
 public:
  // As many at most as `threads`; more threads that the host may send return at once.
  explicit Team(int threads);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls body(parallel_for) once, on the caller's thread if the host has that take a task at once and else on another,
  // with a parallel_for that is good until it returns. An exception of a task reaches the body, one of the body's the
  // caller. One run at a time.
  template <typename Body>
  void run(const ParallelFor& host, Body&& body) {
    if (host.threads() <= 1 || shares_.size() <= 1) {
      const FlushedDenormals flushed(host.flushes_denormals());
      return body(host);
    }
    open();
    std::exception_ptr thrown;  // not every host carries one from its threads to its caller
    host(static_cast<int64_t>(shares_.size()), [&](int64_t) {
      if (!lead()) return serve();
      try {
        body(ParallelFor(&Team::step, this, static_cast<int>(shares_.size())));
      } catch (...) {
        thrown = std::current_exception();
      }
      close();
    });
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  struct alignas(64) Share {
    // The member's share of the current step: the first task in the low half, the end in the high one.
    std::atomic<uint64_t> left{0};
    std::atomic<pid_t> thread{0};  // the member; 0 until it has come
    int core = -1;                 // where it was then
  };

  static void step(void* self, int64_t tasks, ParallelFor::Task task, void* arg);
  void open();
  void close();
  void announce();
  void deal(int64_t first, int64_t tasks);
  bool all_come() const { return arrivals_.load(std::memory_order_relaxed) + 1 >= shares_.size(); }
  void send_late_ones();
  bool lead();
  void serve();
  // Takes tasks until none is left unbegun; how many it did.
  int64_t work(size_t member);
  void attempt(int64_t task);

  std::vector<Share> shares_;  // by member; the leader is member 0
  std::vector<pid_t> known_;   // who came to the last run that all came to, but the leader
  bool looked_for_ = false;    // those who are late in this run
  std::thread::id caller_;
  std::atomic<bool> led_{false};
  std::atomic<size_t> arrivals_{0};  // leader not counted
  // The current step. Written by the leader while no task is in anyone's hands; taking a task makes it visible.
  ParallelFor::Task task_ = nullptr;
  void* arg_ = nullptr;
  int64_t first_ = 0;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  alignas(64) std::atomic<int64_t> served_{0};  // tasks of the current step done by others than the leader
  alignas(64) std::atomic<uint32_t> bell_{0};   // rung at each step and at the end
  std::atomic<bool> closed_{false};
};

}  // namespace softneuro
