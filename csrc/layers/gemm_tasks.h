// What the routines on the gemm kernels share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/error.h"
#include "base/refusal.h"
#include "kernels/gemm/gemm.h"

namespace softneuro {

// Kernels count in int: refuses what it cannot hold.
inline Refusal check_gemm_sizes(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max() / 64;
  return std::max({m, n, k}) < limit ? Refusal() : Refusal("sizes are beyond the kernels' 32-bit offsets");
}

inline GemmTiling gemm_tiling(const GemmKernels& kernels, int panel) {
  if (panel < 1 || panel > kernels.max_panel) {
    throw Error("panel must be in [1, " + std::to_string(kernels.max_panel) + "], not " + std::to_string(panel));
  }
  GemmTiling tiling;
  tiling.panel = panel;
  return tiling;
}

inline size_t round_to_line(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace softneuro
