// pad: a border around any axes: constant, mirrored without the edge, the edge repeated, or what is at the other end.
// Negative padding crops. As much at one end as is cropped at the other turns an axis around.
#pragma once

#include <vector>

#include "layers/contract/layer.h"

namespace softneuro {

enum class PadMode : unsigned char { constant, reflect, replicate, wrap };

struct PadParams {
  PadMode mode;
  std::vector<int64_t> before, after;  // by axis
  float value;
};

// Throws Error if an attribute is missing, unknown or does not fit the shape.
PadParams pad_params(const Layer& layer, const Shape& in);

// The input index, along an axis of `size`, that gives the output at distance `index` from the input's first element;
// -1 for the constant.
int64_t pad_source(PadMode mode, int64_t index, int64_t size);

void pad_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
