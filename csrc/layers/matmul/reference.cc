#include "layers/matmul/matmul.h"

namespace softneuro {

void matmul_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const MatmulParams p = matmul_params(layer, {in[0].shape}, {in[1].shape});
  double* dst = out.data;
  for (int64_t batch = 0; batch < p.batch.elements(); ++batch) {
    const auto [a_offset, b_offset] = p.offsets(batch);
    const double *a = in[0].data + a_offset, *b = in[1].data + b_offset;
    for (int64_t m = 0; m < p.m; ++m)
      for (int64_t n = 0; n < p.n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          sum += a[p.transpose_a ? k * p.m + m : m * p.k + k] * b[p.transpose_b ? n * p.k + k : k * p.n + n];
        }
        *dst++ = sum;
      }
  }
}

}  // namespace softneuro
