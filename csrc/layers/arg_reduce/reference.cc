#include "layers/arg_reduce/arg_reduce.h"

namespace softneuro {

void arg_reduce_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const ArgReduceParams p = arg_reduce_params(layer, in[0].shape);
  for (int64_t i = 0; i < p.outer * p.inner; ++i) {
    const double* x = in[0].data + i / p.inner * p.size * p.inner + i % p.inner;
    int64_t found = 0;
    for (int64_t k = 1; k < p.size; ++k) {
      if (is_further(p, x[k * p.inner], x[found * p.inner])) found = k;
    }
    out.data[i] = static_cast<double>(found);
  }
}

}  // namespace softneuro
