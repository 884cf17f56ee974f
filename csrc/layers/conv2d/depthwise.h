// A depthwise convolution as its kernels take it.
#pragma once

#include "kernels/conv_depthwise/conv_depthwise.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

// Everything but src, dst and the residual; the activation is the layer's. bias: null for none.
ConvDepthwiseArgs depthwise_args(const Conv2dParams& p, const Layer& layer, const float* weights, const float* bias);

}  // namespace softneuro
