#include "net/arena_pool.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace softneuro {

ArenaPool::ArenaPool() { idle_.reserve(max_idle); }  // giving one back must not throw

AlignedBuffer ArenaPool::take(size_t bytes) {
  if (bytes == 0) return {};
  AlignedBuffer too_small;  // freed outside the lock
  size_t wanted = bytes;
  {
    const std::unique_lock lock(mutex_);
    wanted = std::max(largest_, bytes);
    const auto fits = std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& b) { return b.size() >= bytes; });
    if (fits != idle_.rend()) {
      AlignedBuffer found = std::move(*fits);
      idle_.erase(std::next(fits).base());
      return found;
    }
    if (!idle_.empty()) {
      too_small = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  too_small = AlignedBuffer();
  AlignedBuffer made;
  try {
    made = AlignedBuffer(wanted);
  } catch (const Error&) {
    if (wanted == bytes) throw;
    made = AlignedBuffer(bytes);
  }
  const std::unique_lock lock(mutex_);
  largest_ = made.size();
  return made;
}

void ArenaPool::give_back(AlignedBuffer buffer) noexcept {
  if (buffer.size() == 0) return;
  const std::unique_lock lock(mutex_);
  if (idle_.size() < max_idle) idle_.push_back(std::move(buffer));
}

}  // namespace softneuro
