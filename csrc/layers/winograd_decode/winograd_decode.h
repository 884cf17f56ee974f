// winograd_decode: m[P,T,K] + bias[K] -> [N,K,H',W'], the inverse of a Winograd convolution's transforms.
#pragma once

#include "layers/products/winograd_stages.h"

namespace softneuro {

// Throws Error about the first thing that is wrong with attributes, weights or the input. What only the convolution's
// input has is left out.
WinogradShape winograd_decode_shape(const Layer& layer, const TensorDesc& in);

}  // namespace softneuro
