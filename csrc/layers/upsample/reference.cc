#include "layers/upsample/upsample.h"

namespace softneuro {

void upsample_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const UpsampleParams p = upsample_params(layer);
  const int64_t height = in[0].shape[2], width = in[0].shape[3];
  const UpsampleAxis rows = upsample_axis(layer, 0, height), cols = upsample_axis(layer, 1, width);
  double* dst = out.data;
  for (int64_t plane = 0; plane < out.shape[0] * out.shape[1]; ++plane) {
    const double* src = in[0].data + plane * height * width;
    for (const auto& y : rows.taps) {
      for (const auto& x : cols.taps) {
        if (x.outside() || y.outside()) {
          *dst++ = static_cast<double>(p.outside);
          continue;
        }
        if (!p.bilinear) {
          *dst++ = src[y.first * width + x.first];
          continue;
        }
        const auto along = [&](int64_t row) {
          return src[row * width + x.first] * static_cast<double>(x.first_share) +
                 src[row * width + x.second] * static_cast<double>(x.second_share);
        };
        *dst++ =
            along(y.first) * static_cast<double>(y.first_share) + along(y.second) * static_cast<double>(y.second_share);
      }
    }
  }
}

}  // namespace softneuro
