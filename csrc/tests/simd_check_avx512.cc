#define SN_TEST_LEVEL "avx512"
#include "tests/simd_check.h"
