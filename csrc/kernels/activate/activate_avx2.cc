#include "kernels/activate/generic.h"
