#include "kernels/quantize/generic.h"
