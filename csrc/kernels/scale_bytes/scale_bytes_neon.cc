#include "kernels/scale_bytes/generic.h"
