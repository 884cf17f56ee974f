#include "base/fork_mutex.h"

#include <pthread.h>

#include <mutex>
#include <vector>

namespace softneuro {
namespace {

struct All {
  std::mutex mutex;
  std::vector<ForkMutex*> locks;
};

All& all() {
  static All* const made = [] {
    pthread_atfork(
        [] {
          all().mutex.lock();
          for (ForkMutex* lock : all().locks) {
            if (lock->taken_at_fork()) lock->lock();
          }
        },
        [] {
          for (ForkMutex* lock : all().locks) {
            if (lock->taken_at_fork()) lock->unlock();
          }
          all().mutex.unlock();
        },
        [] {
          for (ForkMutex* lock : all().locks) lock->renew();
          all().mutex.unlock();
        });
    return new All;  // never destroyed: locks may go while the process ends
  }();
  return *made;
}

}  // namespace

ForkMutex::ForkMutex(AtFork at_fork) : at_fork_(at_fork) {
  const std::lock_guard lock(all().mutex);
  all().locks.push_back(this);
}

ForkMutex::~ForkMutex() {
  const std::lock_guard lock(all().mutex);
  std::erase(all().locks, this);
}

}  // namespace softneuro
