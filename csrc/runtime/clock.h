// The clock of the runtime; tests have clocks of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace softneuro {

using NowNs = std::function<int64_t()>;

inline int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace softneuro
