// Numbers below the least normal float (1.2e-38) that count as zero on a thread for a while. Many CPUs take a hundred
// cycles for each operation on one.
#pragma once

#include <cstdint>

namespace softneuro {

// While it lives, and if `flushes`: for this thread, both as operands and as results. What was before is restored.
class FlushedDenormals {
 public:
  explicit FlushedDenormals(bool flushes) : flushes_(flushes) {
    if (!flushes_) return;
    before_ = get();
    set(before_ | flags);
  }
  ~FlushedDenormals() {
    if (flushes_) set(before_);
  }
  FlushedDenormals(const FlushedDenormals&) = delete;
  FlushedDenormals& operator=(const FlushedDenormals&) = delete;

 private:
#if defined(__x86_64__)
  using Register = unsigned;
  static constexpr Register flags = 0x8040;  // FTZ and DAZ of MXCSR
  static Register get() { return __builtin_ia32_stmxcsr(); }
  static void set(Register value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register flags = uint64_t{1} << 24;  // FZ of FPCR
  static Register get() {
    Register value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set(Register value) { asm volatile("msr fpcr, %0" ::"r"(value)); }
#else
  using Register = unsigned;
  static constexpr Register flags = 0;
  static Register get() { return 0; }
  static void set(Register) {}
#endif

  const bool flushes_;
  Register before_ = 0;
};

}  // namespace softneuro
