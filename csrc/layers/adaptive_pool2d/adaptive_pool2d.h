// adaptive_pool2d: max or average over windows that divide the image evenly into output_size.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

// Output `i` of `outputs` covers [begin, end) of `size` inputs; windows of neighbours may overlap.
struct AdaptiveWindow {
  int64_t begin, end;
};
inline AdaptiveWindow adaptive_window(int64_t i, int64_t outputs, int64_t size) {
  return {i * size / outputs, ((i + 1) * size + outputs - 1) / outputs};
}

void adaptive_pool2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
