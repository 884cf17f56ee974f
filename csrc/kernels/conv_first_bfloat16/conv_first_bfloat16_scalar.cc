#include "kernels/conv_first_bfloat16/generic.h"
