#include "layers/conv_transpose2d/col2im.h"

#include <algorithm>

namespace softneuro {

void col2im_add(const ConvTranspose2dParams& p, const float* columns, int64_t pitch, int64_t row_begin, int64_t row_end,
                float* plane) {
  for (int64_t ky = 0; ky < p.kh; ++ky)
    for (int64_t kx = 0; kx < p.kw; ++kx, columns += pitch) {
      const int64_t shift = kx * p.dw - p.pw;  // of input column 0
      const int64_t begin = shift >= 0 ? 0 : std::min((-shift + p.sw - 1) / p.sw, p.w);
      const int64_t end = std::clamp<int64_t>(p.ow <= shift ? 0 : (p.ow - shift + p.sw - 1) / p.sw, begin, p.w);
      for (int64_t y = row_begin; y < row_end; ++y) {
        const int64_t oy = y * p.sh + ky * p.dh - p.ph;
        if (oy < 0 || oy >= p.oh) continue;
        const float* src = columns + (y - row_begin) * p.w;
        float* dst = plane + oy * p.ow + shift;
        if (p.sw == 1) {
          for (int64_t x = begin; x < end; ++x) dst[x] += src[x];
        } else {
          for (int64_t x = begin; x < end; ++x) dst[x * p.sw] += src[x];
        }
      }
    }
}

}  // namespace softneuro
