// conv2d: x[N,C,H,W] * weight[K,C/groups,kh,kw] + bias[K] -> [N,K,H',W'].
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

// Everything a convolution's routines need to know, validated. Sizes in elements; padding may differ on all sides.
struct Conv2dParams {
  int64_t n = 0, c = 0, h = 0, w = 0;      // input
  int64_t k = 0, oh = 0, ow = 0;           // output
  int64_t kh = 1, kw = 1;                  // kernel
  int64_t sh = 1, sw = 1;                  // stride
  int64_t dh = 1, dw = 1;                  // dilation
  int64_t pt = 0, pl = 0, pb = 0, pr = 0;  // padding
  int64_t groups = 1;

  int64_t group_c() const { return c / groups; }
  int64_t group_k() const { return k / groups; }
  bool pointwise() const { return kh == 1 && kw == 1 && pt == 0 && pl == 0 && pb == 0 && pr == 0; }
  bool depthwise() const { return groups == c && k == c && groups > 1; }
  bool empty() const { return n * k * oh * ow == 0; }
};

const LayerDef& conv2d_layer();

// Throws Error about the first thing that is wrong with attributes, weights or the input.
Conv2dParams conv2d_params(const Layer& layer, const TensorDesc& in);

// A list of `count` integers, each in [least, 2^31). Throws Error naming the attribute.
std::vector<int64_t> sized_integers(const Attrs& attrs, std::string_view name, size_t count, int64_t fallback,
                                    int64_t least);
// Throws Error unless the optional weight "bias" has shape [k].
void check_bias(const Layer& layer, int64_t k);

}  // namespace softneuro
