#include "kernels/gemm/gemm.h"

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(GemmKernels, gemm, SN_VECTOR_LEVELS)
const GemmKernels* gemm_kernels(Isa isa) { return find_kernels(gemm_list, isa); }

int gemm_panels(int n, int lanes, int panel) { return ceil_div(n, lanes * panel); }
size_t gemm_packed_size(int n, int k, int lanes) { return static_cast<size_t>(round_up(n, lanes)) * k; }
size_t gemm_panel_offset(int k, int lanes, int panel, int index) {
  return static_cast<size_t>(index) * panel * lanes * k;
}

}  // namespace softneuro
