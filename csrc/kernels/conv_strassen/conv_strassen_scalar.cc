#include "kernels/conv_strassen/generic.h"
