#include "kernels/conv_nchw/generic.h"
