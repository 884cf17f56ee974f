// The team's promises: every task once under any host, exceptions to where they belong, and no waiting for threads that
// do not come.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/team.h"
#include "tests/expect.h"

namespace {

using softneuro::ParallelFor;
using softneuro::Team;
using softneuro::ThreadPool;
using softneuro::test::expect;

bool sums_up(const ParallelFor& parallel_for, int64_t tasks) {
  std::vector<int> seen(static_cast<size_t>(tasks));  // not atomic: a step's end is to make its tasks' writes visible
  parallel_for(tasks, [&](int64_t task) { ++seen[static_cast<size_t>(task)]; });
  for (const int count : seen)
    if (count != 1) return false;
  return true;
}

void every_task_once(const ParallelFor& host, int threads) {
  Team team(threads);
  for (int round = 0; round < 30; ++round) {
    int bodies = 0;
    team.run(host, [&](const ParallelFor& parallel_for) {
      ++bodies;
      for (int64_t tasks : {0, 1, 2, 3, 7, 64, 1000})
        for (int step = 0; step < 20; ++step) expect(sums_up(parallel_for, tasks), "every task runs once");
    });
    expect(bodies == 1, "the body runs once");
  }
}

void exceptions(const ParallelFor& host, int threads) {
  Team team(threads);
  for (int round = 0; round < 50; ++round) {
    bool in_body = false, at_caller = false;
    try {
      team.run(host, [&](const ParallelFor& parallel_for) {
        try {
          parallel_for(50, [](int64_t task) {
            if (task % 10 == 3) throw softneuro::Error("task 3");
          });
        } catch (const softneuro::Error&) {
          in_body = true;
        }
        expect(sums_up(parallel_for, 9), "the team works after an exception");
        throw softneuro::Error("body");
      });
    } catch (const softneuro::Error& error) {
      at_caller = std::string(error.what()).find("body") != std::string::npos;
    }
    expect(in_body, "an exception of a task reaches the body");
    expect(at_caller, "an exception of the body reaches the caller");
  }
}

// A host that calls its tasks one after another, on the caller's thread or on another one.
struct Serial {
  bool elsewhere;
  static void run(void* self, int64_t tasks, ParallelFor::Task task, void* arg) {
    const auto all = [&] {
      for (int64_t i = 0; i < tasks; ++i) task(arg, i);
    };
    if (static_cast<Serial*>(self)->elsewhere)
      std::thread(all).join();
    else
      all();
  }
};

// One thread comes long after the others are done.
void late(void*, int64_t tasks, ParallelFor::Task task, void* arg) {
  std::atomic<bool> finished{false};
  std::thread last([&] {
    finished.wait(false);
    for (int64_t i = 1; i < tasks; ++i) task(arg, i);
  });
  task(arg, 0);
  finished = true;
  finished.notify_all();
  last.join();
}

// Members that sleep through a long serial part wake for the step after it.
void long_pause(const ParallelFor& host, int threads) {
  Team team(threads);
  team.run(host, [&](const ParallelFor& parallel_for) {
    expect(sums_up(parallel_for, 8), "before the pause");
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    expect(sums_up(parallel_for, 8), "after the pause");
  });
}

// Whether a number below the least normal one is zero as an operand, and as a result.
bool flushes() {
  const volatile float denormal = 0x1p-130F, large = 0x1p100F, least = 0x1p-126F, small = 0x1p-4F;
  const volatile float from = denormal * large, to = least * small;
  return from == 0 && to == 0;
}

// In all tasks, whoever runs them, and in the body's own; before and after it nothing changes.
void denormals(const ParallelFor& host, int threads) {
  Team team(threads);
  for (const bool flushing : {true, false, true}) {
    std::vector<int> seen(100);
    bool in_body = false;
    const auto body = [&](const ParallelFor& parallel_for) {
      in_body = flushes();
      parallel_for(100, [&](int64_t task) { seen[static_cast<size_t>(task)] = flushes() ? 1 : 0; });
    };
    team.run(flushing ? host.flushing_denormals() : host, body);
    expect(in_body == flushing, "denormals are zero in the body if that is asked for");
    for (const int one : seen) expect(one == (flushing ? 1 : 0), "denormals are zero in tasks if that is asked for");
    expect(!flushes(), "denormals are what they were after a run");
    host(20, [&](int64_t) { expect(!flushes(), "denormals are what they were on the host's threads"); });
  }
}

}  // namespace

SN_TEST(team_test) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int members : {1, 2, 4, 9}) {
      every_task_once(pool.parallel_for(), members);
      exceptions(pool.parallel_for(), members);
      denormals(pool.parallel_for(), members);
      long_pause(pool.parallel_for(), members);
    }
  }
  for (const bool elsewhere : {false, true}) {
    Serial serial{elsewhere};
    every_task_once({&Serial::run, &serial, 3}, 3);
    exceptions({&Serial::run, &serial, 3}, 3);
    denormals({&Serial::run, &serial, 3}, 3);
  }
  every_task_once({&late, nullptr, 3}, 3);
}
