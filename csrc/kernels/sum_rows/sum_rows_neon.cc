#include "kernels/sum_rows/generic.h"
