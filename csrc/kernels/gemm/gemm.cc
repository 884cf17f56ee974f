#include "kernels/gemm/gemm.h"

#include "kernels/integers.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const GemmKernels gemm_##isa;
#include "kernels/gemm/kernels.inc"
#undef SN_KERNELS

const GemmKernels* gemm_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &gemm_##level;
#include "kernels/gemm/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

int gemm_panels(int n, int lanes, int panel) { return ceil_div(n, lanes * panel); }
size_t gemm_packed_size(int n, int k, int lanes) { return static_cast<size_t>(round_up(n, lanes)) * k; }
size_t gemm_panel_offset(int k, int lanes, int panel, int index) {
  return static_cast<size_t>(index) * panel * lanes * k;
}

}  // namespace softneuro
