#include "kernels/combine_bytes/generic.h"
