// A lock that a forked child finds open: while another thread held it in the parent, it would wait for ever.
#pragma once

#include <new>
#include <shared_mutex>

namespace softneuro {

// Those that are taken while others are held have to be made after these: a fork takes all, in the order of their
// making.
class ForkMutex {
 public:
  // What may be held while others' code runs is left alone in the parent: that code might be what waits for the fork.
  enum class AtFork : unsigned char { take, leave };
  explicit ForkMutex(AtFork at_fork = AtFork::take);
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }
  void lock_shared() { mutex_.lock_shared(); }
  void unlock_shared() { mutex_.unlock_shared(); }
  bool taken_at_fork() const { return at_fork_ == AtFork::take; }
  // For a child: the lock knows its owner's thread id, which is another one there.
  void renew() { new (&mutex_) std::shared_mutex; }

 private:
  const AtFork at_fork_;
  std::shared_mutex mutex_;
};

}  // namespace softneuro
