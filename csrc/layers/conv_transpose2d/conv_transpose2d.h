// conv_transpose2d: x[N,C,H,W], weight[C,K/groups,kh,kw], bias[K] -> [N,K,H',W']: every input element is scattered
// through the kernel, which is the gradient of conv2d with respect to its input.
#pragma once

#include "layers/contract/routine.h"

namespace softneuro {

struct ConvTranspose2dParams {
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t k = 0, oh = 0, ow = 0;
  int64_t kh = 1, kw = 1;
  int64_t sh = 1, sw = 1;
  int64_t dh = 1, dw = 1;
  int64_t ph = 0, pw = 0;
  int64_t groups = 1;

  int64_t group_c() const { return c / groups; }
  int64_t group_k() const { return k / groups; }
};

// Throws Error about the first thing that is wrong with attributes, weights or the input.
ConvTranspose2dParams conv_transpose2d_params(const Layer& layer, const TensorDesc& in);
inline ConvTranspose2dParams conv_transpose2d_params(const Problem& problem) {
  return conv_transpose2d_params(*problem.layer, problem.in[0]);
}

}  // namespace softneuro
