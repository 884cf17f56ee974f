#include "kernels/finite/generic.h"
