// The pool's promises: every task once, exceptions to the caller, nesting, several callers, life after fork.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "tests/expect.h"

namespace {

using softneuro::ParallelFor;
using softneuro::test::expect;

bool sums_up(const ParallelFor& parallel_for, int64_t tasks) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(tasks));
  parallel_for(tasks, [&](int64_t task) { ++seen[static_cast<size_t>(task)]; });
  for (const auto& count : seen)
    if (count != 1) return false;
  return true;
}

void every_task_once(const ParallelFor& parallel_for) {
  for (int64_t tasks : {0, 1, 2, 3, 7, 64, 1000})
    for (int round = 0; round < 200; ++round) expect(sums_up(parallel_for, tasks), "every task runs once");
}

void exceptions_reach_the_caller(const ParallelFor& parallel_for) {
  for (int round = 0; round < 100; ++round) {
    bool caught = false;
    try {
      parallel_for(50, [](int64_t task) {
        if (task % 10 == 3) throw softneuro::Error("task 3");
      });
    } catch (const softneuro::Error&) {
      caught = true;
    }
    expect(caught, "an exception reaches the caller");
    expect(sums_up(parallel_for, 9), "the pool works after an exception");
  }
}

void nested_and_concurrent(const ParallelFor& parallel_for) {
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round)
        parallel_for(9, [&](int64_t) { parallel_for(3, [&](int64_t) { ++total; }); });
    });
  for (std::thread& caller : callers) caller.join();
  expect(total == 6 * 500 * 27, "nested calls from several threads");
}

void life_after_fork(const ParallelFor& parallel_for) {
  const pid_t child = fork();
  if (child == 0) _exit(sums_up(parallel_for, 100) && sums_up(parallel_for, 3) ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  expect(status == 0, "the pool works in a forked child");
  expect(sums_up(parallel_for, 100), "and still in the parent");
}

void idle_costs_nothing(const ParallelFor& parallel_for) {
  parallel_for(4, [](int64_t) {});
  const std::clock_t before = std::clock();
  usleep(300000);
  expect(std::clock() - before < CLOCKS_PER_SEC / 20, "an idle pool sleeps");
}

}  // namespace

SN_TEST(thread_pool_test) {
  for (int threads : {1, 2, 5}) {
    softneuro::ThreadPool pool(threads);
    const ParallelFor parallel_for = pool.parallel_for();
    every_task_once(parallel_for);
    exceptions_reach_the_caller(parallel_for);
    nested_and_concurrent(parallel_for);
    life_after_fork(parallel_for);
    idle_costs_nothing(parallel_for);
  }
  bool refused = false;
  try {
    softneuro::ThreadPool none(0);
  } catch (const softneuro::Error&) {
    refused = true;
  }
  expect(refused, "a pool of no threads is refused");
}
