// Runs the simd checks of every level that this machine has; exit status 1 if any failed.
#include "base/arch.h"
#include "tests/expect.h"

namespace softneuro {
namespace scalar {
int check();
}
namespace avx2 {
int check();
}
namespace avx512 {
int check();
}
namespace neon {
int check();
}
}  // namespace softneuro

SN_TEST(simd_test) {
  int& failures = softneuro::test::failures();
  failures += softneuro::scalar::check();
#if defined(__x86_64__)
  [[maybe_unused]] const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  [[maybe_unused]] const bool has_avx512 =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  SN_IF_avx2(if (has_avx2) failures += softneuro::avx2::check());
  SN_IF_avx512(if (has_avx512) failures += softneuro::avx512::check());
#elif defined(__aarch64__)
  failures += softneuro::neon::check();
#endif
}
