#include "kernels/gemm_int8/generic.h"
