#include "base/team.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/core.h"
#include "base/spin.h"

namespace softneuro {
namespace {

// After this long the core is offered to others: the thread waited for may be one of them.
constexpr std::chrono::microseconds team_spin_time{20};
// Offers of the core before a member sleeps until the next step.
constexpr int patience = 200;
constexpr int64_t step_limit = int64_t{1} << 30;  // tasks dealt at once, for both halves of a share to have room

constexpr uint64_t pack(int64_t next, int64_t end) {
  return static_cast<uint64_t>(end) << 32 | static_cast<uint64_t>(next);
}
constexpr int64_t next_of(uint64_t left) { return static_cast<int64_t>(left & 0xffffffff); }
constexpr int64_t end_of(uint64_t left) { return static_cast<int64_t>(left >> 32); }

// The first task of what is left, or -1.
int64_t take_first(std::atomic<uint64_t>& left) {
  uint64_t seen = left.load(std::memory_order_relaxed);
  while (next_of(seen) < end_of(seen))
    if (left.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return next_of(seen);
  return -1;
}

// The last task: its owner, who goes forward, comes to it last.
int64_t take_last(std::atomic<uint64_t>& left) {
  uint64_t seen = left.load(std::memory_order_relaxed);
  while (next_of(seen) < end_of(seen))
    if (left.compare_exchange_weak(seen, seen - (uint64_t{1} << 32), std::memory_order_acquire,
                                   std::memory_order_relaxed))
      return end_of(seen) - 1;
  return -1;
}

}  // namespace

Team::Team(int threads) : shares_(static_cast<size_t>(std::max(threads, 1))) { known_.reserve(shares_.size()); }

void Team::open() {
  caller_ = std::this_thread::get_id();
  led_.store(false, std::memory_order_relaxed);
  arrivals_.store(0, std::memory_order_relaxed);
  closed_.store(false, std::memory_order_relaxed);
  looked_for_ = false;
  for (Share& share : shares_) share.thread.store(0, std::memory_order_relaxed);
}

void Team::announce() {
  bell_.fetch_add(1);
  bell_.notify_all();
}

void Team::close() {
  if (all_come()) {
    known_.clear();
    for (size_t i = 1; i < shares_.size(); ++i)
      if (const pid_t thread = shares_[i].thread.load(std::memory_order_relaxed); thread != 0) known_.push_back(thread);
  }
  closed_.store(true, std::memory_order_relaxed);
  announce();
}

void Team::step(void* self, int64_t tasks, ParallelFor::Task task, void* arg) {
  Team& team = *static_cast<Team*>(self);
  team.task_ = task;
  team.arg_ = arg;
  for (int64_t first = 0; first < tasks; first += step_limit) team.deal(first, std::min(step_limit, tasks - first));
  if (!team.failed_.load(std::memory_order_relaxed)) return;
  team.failed_.store(false, std::memory_order_relaxed);
  std::rethrow_exception(std::exchange(team.error_, nullptr));
}

void Team::deal(int64_t first, int64_t tasks) {
  first_ = first;
  served_.store(0, std::memory_order_relaxed);
  const auto members = static_cast<int64_t>(shares_.size());
  for (int64_t member = 0; member < members; ++member) {
    const Range range = split_range(tasks, members, member);
    shares_[static_cast<size_t>(member)].left.store(pack(range.begin, range.end), std::memory_order_release);
  }
  announce();
  const int64_t others = tasks - work(0);
  const auto finished = [&] { return served_.load(std::memory_order_acquire) == others; };
  while (!spin_until(finished, team_spin_time)) sched_yield();
}

// Once in a run, after the leader's first task, when most have come. It costs four system calls for each who is late;
// one who has a core of its own stays there.
void Team::send_late_ones() {
  looked_for_ = true;
  TakenCores taken;
  taken.add(current_core());
  for (const Share& share : shares_)
    if (share.thread.load(std::memory_order_acquire) != 0) taken.add(share.core);
  for (const pid_t thread : known_) {
    const bool has_come = std::any_of(shares_.begin(), shares_.end(), [&](const Share& share) {
      return share.thread.load(std::memory_order_relaxed) == thread;
    });
    if (!has_come) taken.free_of(thread);
  }
}

// The caller leads, so that a thread has the same share run after run; one that the host keeps waiting does not.
bool Team::lead() {
  if (std::this_thread::get_id() != caller_ &&
      spin_until([&] { return led_.load(std::memory_order_relaxed); }, team_spin_time))
    return false;
  return !led_.exchange(true, std::memory_order_relaxed);
}

void Team::serve() {
  const size_t member = arrivals_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (member >= shares_.size()) return;
  shares_[member].core = current_core();
  shares_[member].thread.store(current_thread(), std::memory_order_release);
  for (uint32_t heard = bell_.load(std::memory_order_acquire); !closed_.load(std::memory_order_relaxed);) {
    if (const int64_t done = work(member); done > 0) served_.fetch_add(done, std::memory_order_release);
    const auto rung = [&] { return bell_.load(std::memory_order_acquire) != heard; };
    for (int i = 0; !spin_until(rung, team_spin_time); ++i) {
      if (i < patience)
        sched_yield();
      else
        bell_.wait(heard, std::memory_order_acquire);
    }
    heard = bell_.load(std::memory_order_acquire);
  }
}

int64_t Team::work(size_t member) {
  int64_t done = 0;
  for (int64_t task; (task = take_first(shares_[member].left)) >= 0; ++done) {
    attempt(task);
    if (member == 0 && !looked_for_ && !all_come()) send_late_ones();
  }
  for (size_t i = 1; i < shares_.size(); ++i) {
    std::atomic<uint64_t>& left = shares_[(member + i) % shares_.size()].left;
    for (int64_t task; (task = take_last(left)) >= 0; ++done) attempt(task);
  }
  return done;
}

void Team::attempt(int64_t task) {
  if (failed_.load(std::memory_order_relaxed)) return;  // the step's result is lost already
  try {
    task_(arg_, first_ + task);
  } catch (...) {
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }
}

}  // namespace softneuro
