#include "kernels/dot_sparse/generic.h"
