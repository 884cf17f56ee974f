#include "kernels/transpose2d/generic.h"
