#include "kernels/elementwise/generic.h"

namespace softneuro {

using namespace neon;
const ElementwiseTable elementwise_neon = {SN_ELEMENTWISE_OPS(SN_ELEMENTWISE_ROW)};

}  // namespace softneuro
