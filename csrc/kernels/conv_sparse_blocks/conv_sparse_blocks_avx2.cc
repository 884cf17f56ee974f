#include "kernels/conv_sparse_blocks/generic.h"
