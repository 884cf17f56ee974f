#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#define SN_ISA avx2
#define SN_TEST_LEVEL "avx2"
#include "tests/simd_check.h"
#endif
