#include "kernels/dynamic_rows/generic.h"
