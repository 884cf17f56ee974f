#if defined(__aarch64__)
#define SN_ISA neon
#define SN_TEST_LEVEL "neon"
#include "tests/simd_check.h"
#endif
