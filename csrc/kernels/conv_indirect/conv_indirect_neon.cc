#include "kernels/conv_indirect/generic.h"
