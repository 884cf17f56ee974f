#include "kernels/gemm/generic.h"
