#include "kernels/dot_sparse/dot_sparse.h"

#include <algorithm>
#include <cstring>

#include "kernels/dot_sparse/layout.h"
#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {
namespace {

// Integers of a row; packed may be null.
size_t pack_bitmaps(int k, const float* row, int32_t* packed) {
  if (packed == nullptr) {
    const auto zeros = static_cast<size_t>(std::count(row, row + k, 0.0F));
    return 2 * static_cast<size_t>(ceil_div(k, dot_sparse_bitmap)) + k - zeros;
  }
  size_t size = 0;
  for (int l = 0; l < k; l += dot_sparse_bitmap) {
    const int count = std::min(k - l, dot_sparse_bitmap);
    uint64_t bitmap = 0;
    for (int i = 0; i < count; ++i) bitmap |= static_cast<uint64_t>(row[l + i] != 0) << i;
    std::memcpy(packed + size, &bitmap, sizeof bitmap);
    int32_t* to = packed + size + 2;
    for (int i = 0; i < count; ++i) {
      if (row[l + i] != 0) std::memcpy(to++, row + l + i, sizeof(float));
    }
    size += 2 + static_cast<size_t>(__builtin_popcountll(bitmap));
  }
  return size;
}

// Fills up a group by columns whose weight is zero, as a dense product has them too; columns from k on are zeros
// behind the vector, for which rows without such have room.
template <typename Index>
size_t pack_groups(int k, const float* row, int32_t* packed) {
  constexpr int most = 1 << (8 * sizeof(Index)), group = dot_sparse_group;
  size_t size = 0;
  for (int l = 0; l < k;) {
    if (row[l] == 0) {
      ++l;
      continue;
    }
    const int first = l;
    Index columns[group];
    float values[group] = {};
    int count = 0;
    for (; l < k && l - first < most && count < group; ++l) {
      if (row[l] == 0) continue;
      columns[count] = static_cast<Index>(l - first);
      values[count++] = row[l];
    }
    if (packed != nullptr) {
      int free = first;
      if (count < group) {
        while (free < k && row[free] != 0) ++free;
      }
      for (int i = count; i < group; ++i) columns[i] = static_cast<Index>(free - first);
      packed[size] = first;
      std::memcpy(packed + size + 1, columns, sizeof columns);
      std::memcpy(packed + size + 1 + sizeof columns / 4, values, sizeof values);
    }
    size += dot_sparse_group_size(8 * sizeof(Index));
  }
  return size;
}

}  // namespace

SN_KERNEL_LIST(DotSparseKernels, dot_sparse, SN_VECTOR_LEVELS)
const DotSparseKernels* dot_sparse_kernels(Isa isa) { return find_kernels(dot_sparse_list, isa); }

size_t dot_sparse_width(int k) { return static_cast<size_t>(round_up(k + 1, dot_sparse_bitmap)); }

size_t dot_sparse_pack(int n, int k, int bits, const float* weights, int64_t* starts, int32_t* packed) {
  size_t size = 0;
  for (int i = 0; i < n; ++i) {
    const float* row = weights + static_cast<size_t>(i) * k;
    int32_t* const to = packed == nullptr ? nullptr : packed + size;
    if (starts != nullptr) starts[i] = static_cast<int64_t>(size);
    size += bits == 1   ? pack_bitmaps(k, row, to)
            : bits == 8 ? pack_groups<uint8_t>(k, row, to)
                        : pack_groups<uint16_t>(k, row, to);
  }
  if (starts != nullptr) starts[n] = static_cast<int64_t>(size);
  if (packed != nullptr) std::fill_n(packed + size, dot_sparse_slack, 0);
  return size + dot_sparse_slack;
}

}  // namespace softneuro
