#include <cmath>

#include "layers/binary/binary.h"
#include "layers/shared/broadcast.h"

namespace softneuro {
namespace {

double apply(ElementwiseOp function, double a, double b) {
  switch (function) {
    case ElementwiseOp::add:
      return a + b;
    case ElementwiseOp::sub:
      return a - b;
    case ElementwiseOp::mul:
      return a * b;
    case ElementwiseOp::div:
      return a / b;
    case ElementwiseOp::min:
      return std::isnan(a) || a < b ? a : b;
    case ElementwiseOp::max:
      return std::isnan(a) || a > b ? a : b;
    case ElementwiseOp::abs:
      return std::abs(a);
    case ElementwiseOp::sqrt:
      return std::sqrt(a);
    case ElementwiseOp::rsqrt:
      return 1 / std::sqrt(a);
    case ElementwiseOp::sin:
      return std::sin(a);
    case ElementwiseOp::cos:
      return std::cos(a);
    case ElementwiseOp::round:
      return std::nearbyint(a);
    default:
      return std::pow(a, b);
  }
}

}  // namespace

void binary_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  std::vector<TensorDesc> descs;
  for (const RefTensor& tensor : in) descs.push_back({tensor.shape});
  const BinaryParams p = binary_params(layer, descs);
  std::vector<double> values{static_cast<double>(p.scalar)};
  if (p.other) values = reference_weight(layer, "other");
  const double* left = p.constant == 0 ? values.data() : in[0].data;
  const double* right = p.constant == 1 ? values.data() : in.back().data;
  const int64_t count = out.shape.elements();
  for (int64_t i = 0; i < count; ++i) {
    const double a = left[broadcast_source(i, out.shape, p.left)], b = right[broadcast_source(i, out.shape, p.right)];
    out.data[i] = apply(p.function, a, b);
  }
}

}  // namespace softneuro
