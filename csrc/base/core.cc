#include "base/core.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace softneuro {

pid_t current_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

int current_core() { return sched_getcpu(); }

void TakenCores::add(int core) {
  if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set_);
}

void TakenCores::free_of(pid_t thread) const {
  if (syscall(SYS_tgkill, getpid(), thread, 0) != 0) return;  // its number may be another process's by now
  cpu_set_t allowed, others;
  if (sched_getaffinity(thread, sizeof allowed, &allowed) != 0) return;  // a machine of more cores than a set holds
  CPU_AND(&others, &allowed, &set_);
  CPU_XOR(&others, &allowed, &others);
  if (CPU_COUNT(&others) == 0 || CPU_EQUAL(&others, &allowed)) return;
  if (sched_setaffinity(thread, sizeof others, &others) == 0) sched_setaffinity(thread, sizeof allowed, &allowed);
}

}  // namespace softneuro
