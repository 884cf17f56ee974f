#define SN_TEST_LEVEL "avx2"
#include "tests/simd_check.h"
