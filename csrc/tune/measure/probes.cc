#include "tune/measure/probes.h"

#include <algorithm>

namespace softneuro {

// A part of a larger blob: four times as far from row to row as dense, as one of q, k and v in one projection is.
static constexpr int64_t apart = 4;

Strides likely_strides(const Shape& shape, const Layout& layout) {
  Strides strides = dense_strides(shape, layout);
  if (!layout.strided) return strides;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    int64_t& stride = strides[static_cast<size_t>(axis)];
    if (stride > 1) stride *= apart;
  }
  return strides;
}

void fill(AlignedBuffer& buffer, DType dtype) {
  // Any finite values of ordinary size do; a small generator avoids denormals and repeated zeros.
  uint32_t state = 12345;
  with_dtype(dtype, [&](auto kind) {
    using T = decltype(kind);
    T* data = static_cast<T*>(buffer.data());
    for (size_t i = 0; i < buffer.size() / sizeof(T); ++i) {
      state = state * 1664525U + 1013904223U;
      if constexpr (std::is_integral_v<T> || std::is_same_v<T, QInt8>) {
        data[i] = element_from<T>(static_cast<float>(state >> 26));
      } else {
        data[i] = element_from<T>(static_cast<float>(state >> 8) * (2.0F / 16777216.0F) - 1.0F);
      }
    }
  });
}

void grow(AlignedBuffer& buffer, const TensorDesc& desc, const Schema& schema) {
  const int64_t elements = spanned_elements(desc.shape, likely_strides(desc.shape, schema.layout), schema.layout);
  const size_t bytes = std::max(dtype_bytes(schema.dtype, elements), AlignedBuffer::alignment);
  if (buffer.size() >= bytes) return;
  buffer = AlignedBuffer(bytes);
  fill(buffer, schema.dtype);
}

}  // namespace softneuro
