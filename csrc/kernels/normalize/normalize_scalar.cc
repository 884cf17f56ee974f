#include "kernels/normalize/generic.h"
