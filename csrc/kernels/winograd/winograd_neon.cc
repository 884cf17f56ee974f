#include "kernels/winograd/generic.h"
