#include "kernels/peak/generic.h"
