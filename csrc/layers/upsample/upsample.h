// upsample: nearest or bilinear resampling of an image, at the host's exact coordinates. They are PyTorch's, or
// whatever the front door has computed.
#pragma once

#include <array>
#include <vector>

#include "layers/contract/layer.h"

namespace softneuro {

// One spatial axis: which inputs an output coordinate mixes, in which shares.
struct UpsampleAxis {
  struct Tap {
    int64_t first, second;            // -1: outside the image
    float first_share, second_share;  // nearest: 1 and 0
    bool outside() const { return first < 0; }
  };
  std::vector<Tap> taps;  // by output coordinate
};

struct UpsampleParams {
  bool bilinear, align_corners;
  bool shares_first;  // the two shares of each neighbour are multiplied, each step rounded for itself
  float outside;      // what there is outside the image
  std::array<int64_t, 2> output_size;
  std::array<double, 2> scale;  // of H, W as the layer gives it; 0: by the ratio of sizes
};

// Throws Error if an attribute is missing or out of range.
UpsampleParams upsample_params(const Layer& layer);
// Axis 0 is H, 1 is W. Coordinates are computed in float32, as the host does: in another precision a nearest
// neighbour now and then is another one.
UpsampleAxis upsample_axis(const Layer& layer, int axis, int64_t size);

void upsample_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
