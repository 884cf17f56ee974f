#include "kernels/dot_scaled/dot_scaled.h"

#include "kernels/dot_scaled/layout.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(DotScaledKernels, dot_scaled, SN_VECTOR_LEVELS)
const DotScaledKernels* dot_scaled_kernels(Isa isa) { return find_kernels(dot_scaled_list, isa); }

size_t dot_scaled_packed_size(int n, int k, int bits, int lanes) {
  return static_cast<size_t>(dot_scaled_panels(n, lanes)) * dot_scaled_panel_size(k, bits, lanes);
}

double dot_scaled_error(int bits) {
  constexpr double largest = 2.4;    // magnitude of 64 weights, in standard deviations
  constexpr double rounding = 0.29;  // standard deviation of what integers are off by
  return largest * rounding / static_cast<double>(1 << (bits - 1));
}

}  // namespace softneuro
