#include "kernels/store/generic.h"
