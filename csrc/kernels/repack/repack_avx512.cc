#include "kernels/repack/generic.h"
