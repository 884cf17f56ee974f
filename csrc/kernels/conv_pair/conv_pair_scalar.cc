#include "kernels/conv_pair/generic.h"
