#include "kernels/elementwise/generic.h"
