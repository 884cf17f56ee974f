#include "kernels/retile/generic.h"
