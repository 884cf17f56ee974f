#include "kernels/conv_bfloat16/generic.h"
