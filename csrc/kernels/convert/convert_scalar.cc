#include "kernels/convert/generic.h"
