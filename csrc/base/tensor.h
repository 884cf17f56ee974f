// A view of a blob's memory.
#pragma once

#include <array>
#include <cstddef>

#include "base/blob.h"

namespace softneuro {

// In elements from one index of an axis to the next.
using Strides = std::array<int64_t, Shape::max_rank>;

// Memory, not owned. Blobs of dense layouts may have a larger stride along axis 0, being a part of a concatenation; of
// a blocked or tiled one only that stride is of use.
struct TensorView {
  void* data = nullptr;
  Shape shape;
  Schema schema;
  Strides strides{};

  // The elements as T. Throws Error if the schema has others.
  template <typename T>
  T* as() const {
    if (schema.dtype != dtype_of<T>) [[unlikely]]
      refuse_type(dtype_of<T>);
    return static_cast<T*>(data);
  }
  float* f32() const { return as<float>(); }
  // The memory, so many elements on.
  void* at(int64_t elements) const { return static_cast<std::byte*>(data) + dtype_bytes(schema.dtype, elements); }
  // Elements of one index of axis 0, padding lanes included, where they are dense.
  int64_t image_elements() const;
  bool dense() const;

 private:
  [[noreturn]] void refuse_type(DType wanted) const;
};

// Strides of a dense blob. A strided layout has those of the dense one of its kind.
Strides dense_strides(const Shape& shape, const Layout& layout);
TensorView dense_view(void* data, const Shape& shape, const Schema& schema);
// Elements from the first of a view to behind its last one.
int64_t spanned_elements(const Shape& shape, const Strides& strides, const Layout& layout);
// Throws Error for strides that are negative, that let two elements share memory, or whose innermost axis is not side
// by side: the layout nchw_strided or nhwc_strided of a host's tensor.
void check_strides(const Shape& shape, const Strides& strides, const Layout& layout);

}  // namespace softneuro
