#include "kernels/dot_blocks/generic.h"
