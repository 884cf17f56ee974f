#include "kernels/pool/generic.h"
