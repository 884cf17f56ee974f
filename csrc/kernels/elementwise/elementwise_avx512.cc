#include "kernels/elementwise/generic.h"

namespace softneuro {

using namespace avx512;
const ElementwiseTable elementwise_avx512 = {SN_ELEMENTWISE_OPS(SN_ELEMENTWISE_ROW)};

}  // namespace softneuro
