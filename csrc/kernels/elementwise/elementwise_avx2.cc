#include "kernels/elementwise/generic.h"

namespace softneuro {

using namespace avx2;
const ElementwiseTable elementwise_avx2 = {SN_ELEMENTWISE_OPS(SN_ELEMENTWISE_ROW)};

}  // namespace softneuro
