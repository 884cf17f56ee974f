#include "kernels/conv_first/generic.h"
