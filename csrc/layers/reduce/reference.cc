#include <algorithm>
#include <cmath>
#include <limits>

#include "layers/reduce/reduce.h"

namespace softneuro {

void reduce_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Shape& shape = in[0].shape;
  const ReduceParams p = reduce_params(layer, shape);
  const bool extreme = p.op == ReduceOp::max || p.op == ReduceOp::min;
  const double sign = p.op == ReduceOp::min ? -1 : 1;  // what is least is, with the other sign, the greatest
  const int64_t results = out.shape.elements(), count = shape.elements();
  std::fill_n(out.data, results, extreme ? -sign * std::numeric_limits<double>::infinity() : 0.0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (!p.reduced[static_cast<size_t>(axis)]) {
        at += rest % shape[axis] * stride;
        stride *= shape[axis];
      }
      rest /= shape[axis];
    }
    const double x = in[0].data[i];
    double& result = out.data[at];
    if (!extreme) {
      result += p.op == ReduceOp::squares ? x * x : p.op == ReduceOp::magnitudes ? std::abs(x) : x;
    } else if (!(sign * result >= sign * x)) {  // a NaN is taken and kept
      result = std::isnan(result) ? result : x;
    }
  }
  if (p.root) {
    for (int64_t i = 0; i < results; ++i) out.data[i] = std::sqrt(out.data[i]);
  }
  if (p.mean) {
    for (int64_t i = 0; i < results; ++i) out.data[i] /= static_cast<double>(p.count);
  }
}

}  // namespace softneuro
