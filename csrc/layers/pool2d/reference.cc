#include <cmath>
#include <limits>

#include "layers/pool2d/pool2d.h"

namespace softneuro {

void pool2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Pool2dParams p = pool2d_params(layer);
  const auto& [h, w] = p.axes;
  const int64_t planes = out.shape[0] * out.shape[1], height = in[0].shape[2], width = in[0].shape[3];
  double* dst = out.data;
  for (int64_t plane = 0; plane < planes; ++plane) {
    const double* src = in[0].data + plane * height * width;
    for (int64_t oy = 0; oy < out.shape[2]; ++oy) {
      for (int64_t ox = 0; ox < out.shape[3]; ++ox) {
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        int64_t inside = 0, padded = 0;  // taps
        for (int64_t ky = 0; ky < h.kernel; ++ky) {
          for (int64_t kx = 0; kx < w.kernel; ++kx) {
            const int64_t y = oy * h.stride - h.before + ky * h.dilation;
            const int64_t x = ox * w.stride - w.before + kx * w.dilation;
            // What ceil_mode lets a window reach past the padding counts for nothing.
            if (y < height + h.after && x < width + w.after) ++padded;
            if (y < 0 || y >= height || x < 0 || x >= width) continue;
            const double value = src[y * width + x];
            if (value > top || std::isnan(value)) top = value;
            sum += value;
            ++inside;
          }
        }
        const int64_t divisor = p.count_include_pad ? padded : inside;
        *dst++ = p.is_max ? top : inside == 0 ? 0 : sum / static_cast<double>(divisor);
      }
    }
  }
}

}  // namespace softneuro
