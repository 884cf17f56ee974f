
#include "layers/pixel_shuffle/pixel_shuffle.h"

namespace softneuro {

void pixel_shuffle_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const int64_t r = layer.attrs.integer("factor"), height = in[0].shape[2], width = in[0].shape[3];
  const int64_t planes = out.shape[0] * out.shape[1];  // batch and output channel
  double* dst = out.data;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t y = 0; y < height * r; ++y) {
      for (int64_t x = 0; x < width * r; ++x) {
        const int64_t channel = (plane * r + y % r) * r + x % r;
        *dst++ = in[0].data[(channel * height + y / r) * width + x / r];
      }
    }
  }
}

}  // namespace softneuro
