#include "kernels/conv_broadcast/generic.h"
