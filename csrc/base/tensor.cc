#include "base/tensor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace softneuro {
void TensorView::refuse_type(DType wanted) const {
  throw Error("elements of " + schema.str() + " were taken for " + std::string(dtype_name(wanted)));
}

int64_t TensorView::image_elements() const {
  if (shape.rank() == 0) return 1;
  Shape image = shape;
  image[0] = 1;
  return physical_elements(image, schema.layout);
}

bool TensorView::dense() const {
  const Strides wanted = dense_strides(shape, schema.layout);
  const int axes = schema.layout.whole_images() ? std::min(shape.rank(), 1) : shape.rank();
  for (int axis = 0; axis < axes; ++axis) {
    const auto i = static_cast<size_t>(axis);
    if (shape[axis] > 1 && strides[i] != wanted[i]) return false;
  }
  return true;
}

Strides dense_strides(const Shape& shape, const Layout& layout) {
  Strides strides{};
  if (layout.whole_images()) {
    Shape image = shape;
    image[0] = 1;
    strides[0] = physical_elements(image, layout);
    return strides;
  }
  const std::vector<int> order = memory_order(shape.rank(), layout);
  int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[static_cast<size_t>(*axis)] = stride;
    stride *= shape[*axis];
  }
  return strides;
}

TensorView dense_view(void* data, const Shape& shape, const Schema& schema) {
  return {data, shape, schema, dense_strides(shape, schema.layout)};
}

int64_t spanned_elements(const Shape& shape, const Strides& strides, const Layout& layout) {
  if (shape.elements() == 0) return 0;
  if (layout.whole_images()) {
    Shape image = shape;
    image[0] = 1;
    return (shape[0] - 1) * strides[0] + physical_elements(image, layout);
  }
  int64_t last = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) last += (shape[axis] - 1) * strides[static_cast<size_t>(axis)];
  return last + 1;
}

void check_strides(const Shape& shape, const Strides& strides, const Layout& layout) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride and size of those that take a step
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t stride = strides[static_cast<size_t>(axis)];
    if (shape[axis] <= 1) continue;
    if (stride < 0) {
      throw Error("axis " + std::to_string(axis) + " of shape " + shape.str() + " has the negative stride " +
                      std::to_string(stride),
                  {}, "copy the tensor first");
    }
    axes.emplace_back(stride, shape[axis]);
  }
  if (shape.elements() == 0) return;
  std::sort(axes.begin(), axes.end());
  int64_t span = 1;  // of the axes so far
  for (const auto& [stride, size] : axes) {
    if (stride < span) {
      throw Error("elements of a tensor of shape " + shape.str() + " share memory", {}, "copy the tensor first");
    }
    span = stride * (size - 1) + span;
  }
  const std::vector<int> order = memory_order(shape.rank(), layout);
  if (!order.empty() && shape[order.back()] > 1 && strides[static_cast<size_t>(order.back())] != 1) {
    throw Error("elements of axis " + std::to_string(order.back()) + " of shape " + shape.str() +
                    " are not side by side, as " + layout.str() + " has them",
                {}, "copy the tensor first");
  }
}

}  // namespace softneuro
