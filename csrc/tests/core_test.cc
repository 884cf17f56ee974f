// A thread that is on a taken core goes to another, and may use the same cores afterwards.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "base/core.h"
#include "tests/expect.h"

namespace {

using softneuro::TakenCores;
using softneuro::test::expect;

cpu_set_t allowed_to(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  expect(sched_getaffinity(thread, sizeof set, &set) == 0, "which cores a thread may use is known");
  return set;
}

cpu_set_t only(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return set;
}

void allow(pid_t thread, const cpu_set_t& set) {
  expect(sched_setaffinity(thread, sizeof set, &set) == 0, "which cores a thread may use can be set");
}

// The core that a thread runs on or waits for, as the system's table has it: right at once, also for one that waits.
int core_of(pid_t thread) {
  std::ifstream table("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(table, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));  // the name before it may hold anything
  std::string field;
  for (int i = 3; i <= 39; ++i) fields >> field;  // "processor", proc(5)
  return field.empty() ? -1 : std::stoi(field);
}

// A thread that is awake until its end.
class Spinner {
 public:
  Spinner()
      : thread_([this] {
          number_ = softneuro::current_thread();
          while (!stop_) {
          }
        }) {
    while (number_ == 0) std::this_thread::yield();
  }
  ~Spinner() {
    stop_ = true;
    thread_.join();
  }

  pid_t number() const { return number_; }

 private:
  std::atomic<pid_t> number_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses the others
};

// The caller keeps the taken core busy meanwhile. One sight of the thread elsewhere is enough: where other programs
// keep the other cores busy, the scheduler may have it back before that is seen.
void leaves_a_taken_core(int core, const cpu_set_t& allowed) {
  const Spinner spinner;
  const pid_t thread = spinner.number();
  allow(0, only(core));
  TakenCores taken;
  taken.add(core);
  bool left = false;
  for (int i = 0; i < 100 && !left; ++i) {
    allow(thread, only(core));
    allow(thread, allowed);
    const bool there = core_of(thread) == core;
    taken.free_of(thread);
    left = there && core_of(thread) != core;
  }
  allow(0, allowed);
  expect(left, "a thread on a taken core goes to another");
  const cpu_set_t after = allowed_to(thread);
  expect(CPU_EQUAL(&after, &allowed), "it may use the same cores afterwards");
}

void stays_where_it_must(int core) {
  const cpu_set_t here = only(core);
  const Spinner spinner;
  allow(spinner.number(), here);
  TakenCores taken;
  taken.add(core);
  taken.free_of(spinner.number());
  const cpu_set_t after = allowed_to(spinner.number());
  expect(CPU_EQUAL(&after, &here), "a thread that may use nothing but a taken core stays");
}

void leaves_strangers_alone(int core) {
  TakenCores taken;
  taken.add(core);
  taken.add(-1);
  taken.add(CPU_SETSIZE);
  taken.free_of(getppid());  // of another process
  pid_t ended = 0;
  std::thread([&] { ended = softneuro::current_thread(); }).join();
  taken.free_of(ended);
}

}  // namespace

SN_TEST(core_test) {
  const cpu_set_t allowed = allowed_to(0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  const int here = softneuro::current_core();
  expect(here >= 0 && CPU_ISSET(here, &allowed), "the calling thread is on a core that it may use");
  if (CPU_COUNT(&allowed) > 1) leaves_a_taken_core(first, allowed);
  stays_where_it_must(first);
  leaves_strangers_alone(first);
}
