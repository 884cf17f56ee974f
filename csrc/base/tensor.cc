#include "base/tensor.h"

namespace softneuro {

int64_t TensorView::image_elements() const {
  if (shape.rank() == 0) return 1;
  Shape image = shape;
  image[0] = 1;
  return physical_elements(image, schema.layout);
}

TensorView dense_view(void* data, const Shape& shape, const Schema& schema) {
  TensorView view{data, shape, schema, 0};
  view.batch_stride = view.image_elements();
  return view;
}

}  // namespace softneuro
