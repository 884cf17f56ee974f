// Where packed weights lie, in units of four bytes.
#pragma once

namespace softneuro {

constexpr int dot_sparse_bitmap = 64;  // weights of a bitmap
constexpr int dot_sparse_group = 16;   // weights that are kept together with their columns
constexpr int dot_sparse_slack = 16;   // read behind the last weights of a bitmap, at most

// The first column, the distances, the weights.
[[gnu::always_inline]] constexpr int dot_sparse_group_size(int bits) {
  return 1 + dot_sparse_group * bits / 32 + dot_sparse_group;
}

}  // namespace softneuro
