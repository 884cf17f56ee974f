#include "kernels/elementwise/generic.h"

namespace softneuro {

using namespace scalar;
const ElementwiseTable elementwise_scalar = {SN_ELEMENTWISE_OPS(SN_ELEMENTWISE_ROW)};

}  // namespace softneuro
