// squeeze_excite: x[N,C,H,W] scaled per channel by what two small layers make of all channels' means. Put in by plans
// in place of the layers that it covers, never by a door.
//
//   mean[N,C] of x over its pixels
//   squeeze: `squeeze_weight`[S,C,1,1], `squeeze_bias`[S] optional, activation `squeeze_function`, `squeeze_a`, `_b`
//   excite:  `excite_weight`[C,S,1,1], `excite_bias`[C] optional, activation `excite_*`
//   out = x * excite
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct SqueezeExciteParams {
  int64_t n = 0, c = 0, pixels = 0, hidden = 0;
  Activation squeeze, excite;
  bool empty() const { return n * c * pixels == 0; }
};
// Throws Error about the first thing that is wrong.
SqueezeExciteParams squeeze_excite_params(const Layer& layer, const TensorDesc& in);

}  // namespace softneuro
