#include "kernels/conv_depthwise/generic.h"
