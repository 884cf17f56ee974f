#include "layers/conv1d/conv1d.h"

namespace softneuro {

void conv2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

void conv1d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const RefTensor image{with_height_one(in[0].shape), in[0].data};
  conv2d_reference(conv1d_as_conv2d(layer), {&image, 1}, {with_height_one(out.shape), out.data});
}

}  // namespace softneuro
