#include "kernels/conv_winograd_1968/generic.h"
