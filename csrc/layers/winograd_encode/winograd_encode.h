// winograd_encode: x[N,C,H,W] -> [P,T,C], the P positions of the T tiles of a Winograd convolution.
#pragma once

#include "layers/products/winograd_stages.h"

namespace softneuro {

// Throws Error about the first thing that is wrong with attributes or the input. Output channels are left out.
WinogradShape winograd_encode_shape(const Layer& layer, const TensorDesc& in);

}  // namespace softneuro
