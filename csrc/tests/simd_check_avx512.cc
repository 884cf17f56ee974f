#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define SN_ISA avx512
#define SN_TEST_LEVEL "avx512"
#include "tests/simd_check.h"
#endif
