// gemm_int8 at one level. Contract: gemm_int8.h.
#pragma once

#include "kernels/gemm_int8/vectors.h"
#if SN_LEVEL == SN_LEVEL_amx
#include "kernels/gemm_int8/tiles.h"
#endif

namespace softneuro::SN_ISA {
namespace gemm_int8 {

#if SN_LEVEL == SN_LEVEL_amx
constexpr int rows = 32;
#else
constexpr int rows = most_rows(pass_vectors(most_sums));
inline size_t scratch_bytes(const GemmInt8&) { return 0; }
inline void run(const GemmInt8& g, int panel_begin, int panel_end, int row_begin, int row_end, void*) {
  run_panels(g, panel_begin, panel_end, row_begin, row_end);
}
#endif

}  // namespace gemm_int8
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(GemmInt8Kernels, gemm_int8) = {
    .rows = SN_ISA::gemm_int8::rows,
    .scratch_bytes = SN_ISA::gemm_int8::scratch_bytes,
    .run = SN_ISA::gemm_int8::run,
};

}  // namespace softneuro
