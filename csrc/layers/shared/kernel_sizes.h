// What kernels can count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "base/refusal.h"

namespace softneuro {

// Kernels count in int: refuses what leaves no room for blocks and for sums of offsets.
inline Refusal check_kernel_sizes(std::initializer_list<int64_t> sizes) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max() / 64;
  return std::max(sizes) < limit ? Refusal() : Refusal("sizes are beyond the kernels' 32-bit offsets");
}
// A size that it let pass.
constexpr int narrow(int64_t size) { return static_cast<int>(size); }

// Outputs of all images, which some kernels count together.
inline Refusal check_kernel_outputs(int64_t outputs) {
  return outputs < int64_t{1} << 31 ? Refusal() : Refusal("more outputs than the kernels count");
}

}  // namespace softneuro
