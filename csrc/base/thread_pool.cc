#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/core.h"
#include "base/error.h"
#include "base/spin.h"
#include "base/threads.h"

namespace softneuro {
namespace {

// Long enough to span the gap between two layers of a running net, short enough that an idle process is idle.
constexpr std::chrono::microseconds pool_spin_time{40};

// Counts forks on the way from the first process to this one; threads of a pool made under another count are gone.
std::atomic<unsigned> fork_count{0};
void watch_forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
}

thread_local bool inside_task = false;

// The threads of one pool in one process, and the job that they share.
//
// `gate` holds the number of the current job (high half), whether it is closed, and how many workers are in it. A
// worker enters an open job by counting itself in, so a worker that wakes late finds the gate closed and keeps its
// hands off; the caller closes the gate when no task is left and then waits only for those who are in.
class Crew {
 public:
  explicit Crew(int threads) : forks_(fork_count.load()), threads_(static_cast<size_t>(threads - 1)) {}

  ~Crew() {
    stop_.store(true);
    bell_.fetch_add(1);
    bell_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  bool alive() const { return forks_ == fork_count.load(std::memory_order_relaxed); }

  // False if another caller has the crew: nothing was run.
  bool try_run(int64_t tasks, ParallelFor::Task task, void* arg) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    start_workers();
    task_ = task;
    arg_ = arg;
    tasks_ = tasks;
    next_.store(0, std::memory_order_relaxed);
    const uint64_t job = (gate_.load(std::memory_order_relaxed) >> 32) + 1;
    gate_.store(job << 32, std::memory_order_release);
    bell_.fetch_add(1, std::memory_order_release);
    if (tasks > 2)
      bell_.notify_all();
    else
      bell_.notify_one();
    if (asleep_.load(std::memory_order_relaxed) > 0) send_woken();
    work();
    gate_.fetch_or(closed, std::memory_order_acq_rel);
    wait_for_workers();
    std::exception_ptr error = std::move(error_);
    error_ = nullptr;
    failed_.store(false, std::memory_order_relaxed);
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
    return true;
  }

 private:
  static constexpr uint64_t closed = uint64_t{1} << 31;
  static constexpr uint64_t inside_mask = closed - 1;

  void start_workers() {
    if (started_) return;
    started_ = true;
    sigset_t all, before;
    sigfillset(&all);  // signals are for the host's own threads
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (auto& thread : threads_) workers_.emplace_back([this, &thread] { worker_main(thread); });
    } catch (const std::system_error&) {
      // The system grants no more threads: those that started, at worst the caller alone, do all tasks.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // A net's run asks for the crew once and is done before a worker that waits for the caller's core gets it.
  void send_woken() {
    TakenCores taken;
    taken.add(current_core());
    for (const auto& thread : threads_)
      if (const pid_t number = thread.load(std::memory_order_relaxed); number != 0) taken.free_of(number);
  }

  void worker_main(std::atomic<pid_t>& thread) {
    thread.store(current_thread(), std::memory_order_relaxed);
    uint64_t last_job = 0;
    while (true) {
      const uint32_t rung = bell_.load(std::memory_order_acquire);
      if (stop_.load()) return;
      if (enter(last_job)) {
        work();
        if ((gate_.fetch_sub(1) & inside_mask) == 1) gone_.notify();
        continue;
      }
      if (spin_until([&] { return bell_.load(std::memory_order_acquire) != rung; }, pool_spin_time)) continue;
      asleep_.fetch_add(1, std::memory_order_relaxed);
      bell_.wait(rung);
      asleep_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  bool enter(uint64_t& last_job) {
    uint64_t gate = gate_.load(std::memory_order_acquire);
    while (!(gate & closed) && (gate >> 32) != last_job)
      if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) {
        last_job = gate >> 32;
        return true;
      }
    return false;
  }

  void work() {
    inside_task = true;
    for (int64_t index; (index = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_;) {
      try {
        task_(arg_, index);
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
        next_.store(std::numeric_limits<int64_t>::max() / 2, std::memory_order_relaxed);  // no further tasks
      }
    }
    inside_task = false;
  }

  void wait_for_workers() {
    auto empty = [&] { return (gate_.load() & inside_mask) == 0; };
    while (!spin_until(empty, pool_spin_time)) gone_.wait(empty);
  }

  // Wakes the caller when the last worker has left, if the caller sleeps.
  struct Leaving {
    std::atomic<uint32_t> sleeping{0};
    void notify() {
      if (sleeping.exchange(0) != 0) sleeping.notify_one();
    }
    template <typename Done>
    void wait(Done done) {
      sleeping.store(1);
      if (done()) return sleeping.store(0);
      sleeping.wait(1);
    }
  };

  const unsigned forks_;
  std::vector<std::atomic<pid_t>> threads_;  // the system's numbers of the workers; 0 before they have begun
  std::vector<std::thread> workers_;
  bool started_ = false;
  std::atomic<bool> busy_{false}, stop_{false};
  ParallelFor::Task task_ = nullptr;
  void* arg_ = nullptr;
  int64_t tasks_ = 0;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  alignas(64) std::atomic<uint64_t> gate_{closed};
  std::atomic<uint32_t> bell_{0};
  std::atomic<int> asleep_{0};
  Leaving gone_;
  alignas(64) std::atomic<int64_t> next_{0};
};

}  // namespace

struct ThreadPool::State {
  explicit State(int count) : threads(count), crew(new Crew(count)) {}
  ~State() {
    if (Crew* last = crew.load(); last->alive()) delete last;
  }

  // After a fork the old crew's threads do not exist and its locks may be held for ever: it is abandoned, not
  // destroyed.
  Crew& living_crew() {
    Crew* current = crew.load(std::memory_order_acquire);
    if (current->alive()) return *current;
    Crew* fresh = new Crew(threads);
    if (crew.compare_exchange_strong(current, fresh)) return *fresh;
    delete fresh;
    return *current;
  }

  static void run(void* self, int64_t tasks, ParallelFor::Task task, void* arg) {
    State& state = *static_cast<State*>(self);
    if (!inside_task && state.threads > 1 && state.living_crew().try_run(tasks, task, arg)) return;
    for (int64_t index = 0; index < tasks; ++index) task(arg, index);
  }

  const int threads;
  std::atomic<Crew*> crew;
};

ThreadPool::ThreadPool(int threads) {
  if (threads < 1 || threads > 1024)
    throw Error("a pool of " + std::to_string(threads) + " threads was asked for", {}, "choose from 1 to 1024");
  watch_forks();
  state_ = std::make_unique<State>(threads);
}

ThreadPool::~ThreadPool() = default;

ParallelFor ThreadPool::parallel_for() { return {&State::run, state_.get(), state_->threads}; }

ParallelFor own_pool(int threads) {
  static std::mutex mutex;
  static auto* pools = new std::map<int, ThreadPool>;  // never destroyed: workers may outlive static destruction
  if (threads <= 1) return {};
  const std::lock_guard lock(mutex);
  return pools->try_emplace(threads, threads).first->second.parallel_for();
}

}  // namespace softneuro
