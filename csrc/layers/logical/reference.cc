#include "layers/logical/logical.h"
#include "layers/shared/broadcast.h"

namespace softneuro {

void logical_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const LogicalOp op = logical_op(layer);
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    const double a = in[0].data[broadcast_source(i, out.shape, in[0].shape)];
    const double b = in.back().data[broadcast_source(i, out.shape, in.back().shape)];
    out.data[i] = holds(op, a != 0, b != 0) ? 1 : 0;
  }
}

}  // namespace softneuro
