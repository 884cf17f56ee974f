#include "layers/weights/in_layout.h"

#include <algorithm>

namespace softneuro {

void add_in_layout(Packing& packing, const std::string& name, const Shape& shape, const Layout& layout) {
  packing.add(name, physical_elements(shape, layout), DType::float32, shape.elements());
}

void pack_in_layout(const float* values, const Shape& shape, const Layout& layout, Packed& to, std::string_view name) {
  auto* dst = to.at<float>(name);
  if (layout.kind == Layout::Kind::nchw) {
    std::copy_n(values, shape.elements(), dst);
    return;
  }
  std::fill_n(dst, physical_elements(shape, layout), 0.0f);
  const int64_t channels = shape[1], plane = shape.product(2, shape.rank()), block = layout.block;
  const int64_t blocks = (channels + block - 1) / block;
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < plane; ++i) {
        const int64_t at = layout.is_blocked() ? ((n * blocks + c / block) * plane + i) * block + c % block
                                               : (n * plane + i) * channels + c;
        dst[at] = *values++;
      }
}

}  // namespace softneuro
