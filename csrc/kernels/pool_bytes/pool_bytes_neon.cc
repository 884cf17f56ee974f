#include "kernels/pool_bytes/generic.h"
