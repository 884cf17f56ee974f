#include "kernels/conv_first_winograd/generic.h"
