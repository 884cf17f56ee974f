// One layer as a net of its own, for hosts that call layers eagerly.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "net/net.h"

namespace softneuro {

// A net of one layer; `layer.inputs` is ignored, inputs are the given ones. Quantized inputs come, and a quantized
// output is wanted, as bytes. `routine` is a descriptor, with params that it offers or without any for its default, or
// an algorithm's name, or empty for the registry's first choice. `sparse`: only of routines that make use of zeros in
// weights. Throws Error if the layer is not valid, or if the routine is unknown or declines (with its reason).
std::shared_ptr<const Net> prepare_layer(Layer layer, const std::vector<TensorDesc>& in, std::string_view routine,
                                         int threads, bool sparse = false);

// Two layers conv2d without weights as the layer conv2d_pair, whose weights are `first_weight`, `second_bias` and so
// on.
Layer conv2d_pair_of(const Layer& first, const Layer& second);

}  // namespace softneuro
