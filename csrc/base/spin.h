// Waiting for another thread for a moment.
#pragma once

#include <chrono>

namespace softneuro {

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// True once `done()` holds, false if the spinning time passed first.
template <typename Done>
bool spin_until(Done done, std::chrono::microseconds spin_time) {
  for (int i = 0; i < 16; ++i) {  // most waits end before the clock has been read
    if (done()) return true;
    pause_cpu();
  }
  const auto give_up = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  return done();
}

}  // namespace softneuro
