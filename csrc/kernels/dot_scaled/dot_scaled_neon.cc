#include "kernels/dot_scaled/generic.h"
