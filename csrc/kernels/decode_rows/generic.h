#include "kernels/decode_rows/decode_rows.h"
#include "kernels/integers.h"
#include "simd/elements.h"

namespace softneuro::SN_ISA {

[[gnu::flatten]] inline void decode_rows(int n, int k, const int8_t* rows, ptrdiff_t stride, const float* scales,
                                         float* to) {
  const ptrdiff_t width = round_up(n, lanes);
  for (int first = 0; first < n; first += lanes) {
    for (int l = 0; l < k; l += lanes) {
      const int left = k - l < lanes ? k - l : lanes;
      Vf x[lanes];
      for (int i = 0; i < lanes; ++i) {
        if (first + i >= n) {
          x[i] = zero();
          continue;
        }
        const int8_t* const row = rows + (first + i) * stride + l;
        x[i] = (left == lanes ? load(row) : load_n(row, left)) * set(scales[first + i]);
      }
      transpose(x);
      for (int j = 0; j < left; ++j) store(to + (l + j) * width + first, x[j]);
    }
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(DecodeRowsKernel, decode_rows) = SN_ISA::decode_rows;

}  // namespace softneuro
