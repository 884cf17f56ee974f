#include "kernels/softmax/generic.h"
