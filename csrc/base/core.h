// The cores that threads run on.
#pragma once

#include <sched.h>
#include <sys/types.h>

namespace softneuro {

// The system's number of the calling thread.
pid_t current_thread();

// The core of the calling thread; -1 where the system does not say.
int current_core();

// Cores that have a thread to run already.
class TakenCores {
 public:
  TakenCores() { CPU_ZERO(&set_); }
  void add(int core);
  // Moves a thread of this process that runs on one of these cores, or waits for one, to another that it may use.
  // Some schedulers let a thread wake up on the core of the one that wakes it, and leave it waiting there for
  // milliseconds. Nothing happens to a thread that sleeps or has ended, or may use these cores only; which cores a
  // thread may use is the same afterwards.
  void free_of(pid_t thread) const;

 private:
  cpu_set_t set_;
};

}  // namespace softneuro
