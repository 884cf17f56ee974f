#include <algorithm>

#include "layers/integer_binary/integer_binary.h"
#include "layers/shared/broadcast.h"

namespace softneuro {
namespace {

double apply(IntegerOp op, double a, double b) {
  switch (op) {
    case IntegerOp::add:
      return a + b;
    case IntegerOp::sub:
      return a - b;
    case IntegerOp::mul:
      return a * b;
    case IntegerOp::min:
      return std::min(a, b);
    case IntegerOp::max:
      return std::max(a, b);
  }
  return 0;
}

}  // namespace

// It is right for results that float64 holds exactly.
void integer_binary_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const IntegerOp op = integer_op(layer);
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    const double a = in[0].data[broadcast_source(i, out.shape, in[0].shape)];
    const double b = in[1].data[broadcast_source(i, out.shape, in[1].shape)];
    out.data[i] = apply(op, a, b);
  }
}

}  // namespace softneuro
