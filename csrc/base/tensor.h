// A view of a blob's memory, and what is known of a blob before it has any.
#pragma once

#include <cstddef>

#include "base/schema.h"
#include "base/shape.h"

namespace softneuro {

// The logical side of a blob: never says how it is laid out.
struct TensorDesc {
  Shape shape;
  DType dtype = DType::float32;
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

// Memory, not owned. Dense but for axis 0, whose stride may be larger than one image (a slice of a concatenation).
struct TensorView {
  void* data = nullptr;
  Shape shape;
  Schema schema;
  int64_t batch_stride = 0;  // elements from one index of axis 0 to the next

  float* f32() const { return static_cast<float*>(data); }
  // Elements of one index of axis 0, padding lanes included.
  int64_t image_elements() const;
  bool dense() const { return shape.rank() == 0 || shape[0] <= 1 || batch_stride == image_elements(); }
};

TensorView dense_view(void* data, const Shape& shape, const Schema& schema);

}  // namespace softneuro
