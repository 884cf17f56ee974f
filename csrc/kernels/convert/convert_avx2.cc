#include "kernels/convert/generic.h"

namespace softneuro {

const ConvertKernels convert_avx2 = avx2::convert_table;

}  // namespace softneuro
