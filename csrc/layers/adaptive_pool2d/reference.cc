#include <cmath>
#include <limits>

#include "layers/adaptive_pool2d/adaptive_pool2d.h"
#include "layers/pool2d/pool2d.h"

namespace softneuro {

void adaptive_pool2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const bool is_max = pool_is_max(layer.attrs.text("function"));
  const int64_t planes = out.shape[0] * out.shape[1], height = in[0].shape[2], width = in[0].shape[3];
  double* dst = out.data;
  for (int64_t plane = 0; plane < planes; ++plane) {
    const double* src = in[0].data + plane * height * width;
    for (int64_t oy = 0; oy < out.shape[2]; ++oy) {
      for (int64_t ox = 0; ox < out.shape[3]; ++ox) {
        const AdaptiveWindow rows = adaptive_window(oy, out.shape[2], height);
        const AdaptiveWindow cols = adaptive_window(ox, out.shape[3], width);
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t y = rows.begin; y < rows.end; ++y) {
          for (int64_t x = cols.begin; x < cols.end; ++x) {
            const double value = src[y * width + x];
            if (value > top || std::isnan(value)) top = value;
            sum += value;
          }
        }
        *dst++ = is_max ? top : sum / static_cast<double>((rows.end - rows.begin) * (cols.end - cols.begin));
      }
    }
  }
}

}  // namespace softneuro
