#include "kernels/dot_scaled/dot_scaled.h"

#include "kernels/dot_scaled/layout.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const DotScaledKernels dot_scaled_##isa;
#include "kernels/dot_scaled/kernels.inc"
#undef SN_KERNELS

const DotScaledKernels* dot_scaled_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &dot_scaled_##level;
#include "kernels/dot_scaled/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

size_t dot_scaled_packed_size(int n, int k, int bits, int lanes) {
  return static_cast<size_t>(dot_scaled_panels(n, lanes)) * dot_scaled_panel_size(k, bits, lanes);
}

size_t dot_scaled_scales(int n, int k, int lanes) {
  return static_cast<size_t>(dot_scaled_panels(n, lanes)) * dot_scaled_panel_scales(k, lanes);
}

double dot_scaled_error(int bits) {
  constexpr double largest = 2.4;    // magnitude of 64 weights, in standard deviations
  constexpr double rounding = 0.29;  // standard deviation of what integers are off by
  return largest * rounding / static_cast<double>(1 << (bits - 1));
}

}  // namespace softneuro
