#include "kernels/interpolate/generic.h"
