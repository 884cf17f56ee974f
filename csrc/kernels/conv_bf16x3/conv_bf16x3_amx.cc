#include "kernels/conv_bf16x3/generic.h"
