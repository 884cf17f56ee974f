#include "kernels/reduce/generic.h"
