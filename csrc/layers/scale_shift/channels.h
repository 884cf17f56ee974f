// References of layers that are one operation of each element and constants of its channel.
#pragma once

#include "layers/contract/routine.h"

namespace softneuro {

// A reference: out = f(x, channel).
template <typename Function>
void for_channels(const RefTensor& x, const RefTensor& out, size_t channels, const Function& f) {
  const int64_t plane = out.shape.product(2, out.shape.rank()), count = out.shape.elements();
  for (int64_t i = 0; i < count; ++i) out.data[i] = f(x.data[i], static_cast<size_t>(i / plane) % channels);
}

}  // namespace softneuro
