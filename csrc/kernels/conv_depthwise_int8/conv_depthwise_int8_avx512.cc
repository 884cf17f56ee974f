#include "kernels/conv_depthwise_int8/generic.h"
