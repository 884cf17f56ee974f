// The second half of an epilogue, over blocked pixels that were just written and are still in L1.
#pragma once

#include "kernels/apply_activation.h"
#include "kernels/epilogue.h"

namespace softneuro::SN_ISA {

// Activations that are not a clamp; then zero in the lanes past the first `channels` of each pixel.
SN_INLINE void finish_row(const Activation& activation, float* row, int pixels, int channels) {
  if (!is_clamp(activation.kind)) activate_row(row, row, static_cast<size_t>(pixels) * lanes, activation);
  if (channels == lanes) return;
  for (int p = 0; p < pixels; ++p) store(row + p * lanes, load_n(row + p * lanes, channels));
}

}  // namespace softneuro::SN_ISA
