#include "kernels/look_up/generic.h"
