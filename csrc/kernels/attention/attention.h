// Attention of rows to the keys that they share, a block of keys at a time, so that no more than a tile of scores is in
// memory (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention",
// 2022):
//
//   s[i][j] = soft(scale * sum over l of q[i][l] * k[j][l]) + mask[i][j],   soft(x) = cap * tanh(x / cap)
//   dst[i]  = sum over j of exp(s[i][j] - max) * v[j] / sum over j of exp(s[i][j] - max)
//
// Only keys j in [i - before, i + after] count for row i, and only those that a boolean mask has as true. A sink is one
// more key that counts, whose value is zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"

namespace softneuro {

// Keys of one step, at most.
inline constexpr int attention_keys = 128;

// Heads that share keys: row r of all is row r % rows of head r / rows. Strides are in elements.
struct AttentionRows {
  int64_t rows = 0;
  int depth = 0, width = 0;  // elements of a row of q and k, and of v
  const float* q = nullptr;
  ptrdiff_t q_head = 0, q_row = 0;
  float* dst = nullptr;
  ptrdiff_t dst_head = 0, dst_row = 0;
  const void* mask = nullptr;  // null: none; floats that are added, or bytes of which 0 leaves a key out
  bool mask_adds = false;
  bool lowest_drops = false;  // a key whose mask is the least float is left out, too
  ptrdiff_t mask_head = 0, mask_row = 0;
  int64_t before = 0, after = 0, last = 0;  // rows behind `last` see the keys that it sees
  float scale = 1, softcap = 0;             // softcap 0: none
  const float* sinks = nullptr;             // of each head: the score of a key whose value is zero; null: there is none
  float nothing = 0;                        // the result where no key counts: 0 or NaN
  bool zero_nan = false;                    // nor do any where a weight is NaN
};

// Keys [first, first + count), packed by gemm's pack_b in panels of two vectors: k transposed, and v as it is. `first`
// is a multiple of attention_keys.
struct AttentionKeys {
  const float *k = nullptr, *v = nullptr;  // of the first of the keys; of row 0 of v's panels
  int64_t first = 0;
  int count = 0;
  int64_t packed = 0;               // keys of the packing from the first of these on: its last panel may be narrower
  int64_t v_first = 0, v_rows = 0;  // the row of v's panels that is the first key's, and how many they have
};

// Rows [begin, end) take start, then step for blocks of keys in any order, then finish. All between is in scratch.
struct AttentionKernels {
  int tile_rows;  // that scores are computed of at a time
  size_t (*scratch_bytes)(int64_t rows, int depth, int width);
  // Whether the mask leaves any of `count` keys to any of the rows: if not, their step may be left out.
  bool (*counts)(const AttentionRows&, int64_t key, int count, int64_t begin, int64_t end);
  void (*start)(const AttentionRows&, int64_t begin, int64_t end, void* scratch);
  void (*step)(const AttentionRows&, const AttentionKeys&, int64_t begin, int64_t end, void* scratch);
  void (*finish)(const AttentionRows&, int64_t begin, int64_t end, void* scratch);
};

// Null where this build or machine lacks the level.
const AttentionKernels* attention_kernels(Isa isa);

}  // namespace softneuro
