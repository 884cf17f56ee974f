#define SN_ISA scalar
#define SN_TEST_LEVEL "scalar"
#include "tests/simd_check.h"
