#include "kernels/convert/generic.h"

namespace softneuro {

const ConvertKernels convert_neon = neon::convert_table;

}  // namespace softneuro
