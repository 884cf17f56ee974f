// What the routines on the gemm kernels share.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/gemm/gemm.h"
#include "layers/contract/params.h"
#include "layers/shared/kernel_sizes.h"

namespace softneuro {

inline Refusal check_gemm_sizes(int64_t m, int64_t n, int64_t k) { return check_kernel_sizes({m, n, k}); }

inline GemmTiling gemm_tiling(const GemmKernels& kernels, int panel) {
  GemmTiling tiling;
  tiling.panel = parse_within("panel", panel, 1, kernels.max_panel);
  return tiling;
}

// Products whose right side is packed a strip of columns at a time: whole panels of two and of three vectors.
inline constexpr int gemm_strip = 96;
SN_PARAMS(GemmStripParams, panel, columns, split);

inline GemmStripParams checked_strip(const Tuning& tuning) {
  const auto params = GemmStripParams::of(tuning);
  if (params.columns >= 1 && params.columns % gemm_strip == 0) return params;
  throw Error("columns must be a positive multiple of 96, not " + std::to_string(params.columns));
}
// split: how work is best dealt, as a guess.
inline std::vector<Tuning> gemm_strip_choices(int columns, int split, int threads) {
  std::vector<Tuning> list{GemmStripParams{2, columns, split}, GemmStripParams{3, columns, split}};
  if (threads > 1) list.push_back(GemmStripParams{2, columns, 1 - split});
  return list;
}

}  // namespace softneuro
