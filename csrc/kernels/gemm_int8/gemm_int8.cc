#include "kernels/gemm_int8/gemm_int8.h"

#include <algorithm>
#include <cstring>

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(GemmInt8Kernels, gemm_int8, SN_ALL_LEVELS)
const GemmInt8Kernels* gemm_int8_kernels(Isa isa) { return find_kernels(gemm_int8_list, isa); }

static constexpr int block = GemmInt8::block, group = GemmInt8::group;

size_t gemm_int8_packed_bytes(int n, int k) {
  return static_cast<size_t>(round_up(n, block)) * static_cast<size_t>(round_up(k, group));
}

void gemm_int8_pack(int n, int k, const int8_t* weights, ptrdiff_t stride, int8_t* packed) {
  std::memset(packed, 0, gemm_int8_packed_bytes(n, k));
  for (int first = 0; first < n; first += block) {
    for (int j = first; j < std::min(first + block, n); ++j) {
      const int8_t* row = weights + j * stride;
      int8_t* to = packed + (j - first) * group;
      for (int l = 0; l < k; l += group, to += block * group) {
        std::memcpy(to, row + l, static_cast<size_t>(std::min(group, k - l)));
      }
    }
    packed += static_cast<ptrdiff_t>(block) * round_up(k, group);
  }
}

bool gemm_int8_is_narrow(const int8_t* packed, size_t bytes) {
  constexpr int most = INT16_MAX / 255, least = INT16_MIN / 255;
  for (size_t i = 0; i < bytes; i += 2) {
    const int first = packed[i], second = packed[i + 1];
    if (std::max(first, 0) + std::max(second, 0) > most || std::min(first, 0) + std::min(second, 0) < least) {
      return false;
    }
  }
  return true;
}

}  // namespace softneuro
