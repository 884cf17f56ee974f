#include "kernels/conv_direct/generic.h"
