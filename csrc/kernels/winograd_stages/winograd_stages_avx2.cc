#include "kernels/winograd_stages/generic.h"
