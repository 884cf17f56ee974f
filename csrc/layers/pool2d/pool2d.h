// pool2d: max or average over a sliding window.
#pragma once

#include <array>

#include "layers/contract/layer.h"

namespace softneuro {

// One spatial axis of a pool2d.
struct PoolGeometry {
  int64_t kernel, stride, before, after, dilation;  // before, after: padding
};

struct Pool2dParams {
  bool is_max;
  bool ceil_mode;  // a last window may begin inside the image or the leading padding and end past the trailing one
  bool count_include_pad;            // averages divide by the window's size, padding included
  std::array<PoolGeometry, 2> axes;  // of H, W
};

const LayerDef& pool2d_layer();

// Throws Error if an attribute is missing or out of range.
Pool2dParams pool2d_params(const Layer& layer);
// Reads the attribute `function`: max or avg.
bool pool_is_max(const std::string& function);
int64_t pooled_size(const PoolGeometry& axis, int64_t size, bool ceil_mode);

void pool2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
