#include "kernels/conv_sparse/generic.h"
