#include "kernels/conv_sparse_blocks/conv_sparse_blocks.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvSparseBlocksKernels, conv_sparse_blocks, SN_VECTOR_LEVELS)
const ConvSparseBlocksKernels* conv_sparse_blocks_kernels(Isa isa) {
  return find_kernels(conv_sparse_blocks_list, isa);
}

int conv_sparse_blocks_count(const ConvDirectShape& shape, int block) {
  return shape.groups * ceil_div(shape.out_channels, block);
}

// Taps are numbered as conv_direct packs them, [in block][r][s][lane], so that sums go through src in order.
int64_t conv_sparse_blocks_pack(const ConvDirectShape& shape, int block, const float* weights, int32_t* starts,
                                int32_t* taps, float* packed) {
  const int area = shape.kernel_h * shape.kernel_w, depth = shape.in_channels * area;
  std::vector<uint32_t> used;  // any bit of a value that is not zero: quick to gather
  int64_t count = 0;
  int index = 0;
  for (int first = 0; first < shape.groups * shape.out_channels; first += block, ++index) {
    const int rows = std::min(block, shape.groups * shape.out_channels - first);
    const float* const row = weights + static_cast<size_t>(first) * depth;
    used.assign(depth, 0);
    for (int i = 0; i < rows; ++i) {
      const float* const from = row + static_cast<size_t>(i) * depth;
      for (int at = 0; at < depth; ++at) used[at] |= std::bit_cast<uint32_t>(from[at]) & 0x7fffffff;
    }
    if (starts != nullptr) starts[index] = static_cast<int32_t>(count);
    for (int tap = 0; tap < round_up(shape.in_channels, block) * area; ++tap) {
      const int channel = tap / (area * block) * block + tap % block, at = channel * area + tap / block % area;
      if (channel >= shape.in_channels || used[at] == 0) continue;
      if (packed != nullptr) {
        taps[count] = tap;
        float* const to = packed + count * block;
        std::fill_n(to, block, 0.0F);
        for (int i = 0; i < rows; ++i) to[i] = row[static_cast<size_t>(i) * depth + at];
      }
      ++count;
    }
  }
  if (starts != nullptr) starts[index] = static_cast<int32_t>(count);
  return count;
}

}  // namespace softneuro
