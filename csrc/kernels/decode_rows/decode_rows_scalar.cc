#include "kernels/decode_rows/generic.h"
