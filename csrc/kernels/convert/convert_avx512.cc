#include "kernels/convert/generic.h"

namespace softneuro {

const ConvertKernels convert_avx512 = avx512::convert_table;

}  // namespace softneuro
