#include "kernels/squeeze_excite/generic.h"
