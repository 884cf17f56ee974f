#include "kernels/conv_inner_product/generic.h"
