#include "kernels/dot_rows/generic.h"
