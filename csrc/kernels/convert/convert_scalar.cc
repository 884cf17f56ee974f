#include "kernels/convert/generic.h"

namespace softneuro {

const ConvertKernels convert_scalar = scalar::convert_table;

}  // namespace softneuro
