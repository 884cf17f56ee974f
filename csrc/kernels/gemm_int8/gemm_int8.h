// Matrix product of bytes: unsigned ones (activations) with signed ones (weights, packed once and for all). Sums are
// exact, and so the same at every level.
//
//   dst[i][j] = act(scale[j] * (start[j] + row_start[i] + sum over l of a[i][l] * b[j][l]) + bias[j] + residual[i][j])
//
// as elements of the type in epilogue.dst; of int32 it is the starts and the sum, and nothing else is done.
// epilogue.rounded is done with an activation that is a clamp. `start` takes off what a's zero point adds: -zero * sum
// over l of b[j][l]. `row_start` does so for b's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct GemmInt8 {
  static constexpr int block = 16;  // columns of a panel, at every level
  static constexpr int group = 4;   // products along k that lie side by side
  // A sum of at most so many products cannot overflow.
  static constexpr int most_k = 65536 - 128;

  int m = 0, n = 0, k = 0;     // k: a multiple of `group`
  const uint8_t* a = nullptr;  // [m][k]; nothing past k bytes of a row is read
  ptrdiff_t a_stride = 0;      // bytes from row to row
  const int8_t* b = nullptr;   // of pack_b, all panels; 64-byte aligned
  // No sum of two neighbouring products can leave 16 bits: gemm_int8_is_narrow() of the weights.
  bool narrow = false;
  // Padded to whole panels, as bias and scale are; fast if all three are 64-byte aligned.
  const int32_t* start = nullptr;
  const int32_t* row_start = nullptr;  // by row of a; null: zeros
  // The groups of each panel that have weights other than zero, and where in this list each panel's begin; the rest is
  // left out, but for AMX. Null: all count.
  const int32_t* groups = nullptr;
  const int32_t* group_starts = nullptr;  // [panels + 1]
  void* dst = nullptr;                    // [m][n]; nothing past column n is touched
  ptrdiff_t dst_stride = 0;               // elements
  Epilogue epilogue;  // scale is never null unless dst is int32; dst and the residual: float32 or uint8
};

struct GemmInt8Kernels {
  // Rows that a pass over a panel should have at least, to be fast.
  int rows;
  size_t (*scratch_bytes)(const GemmInt8&);
  // Panels [panel_begin, panel_end) of n / block, rounded up; rows [row_begin, row_end). Scratch is 64-byte aligned.
  void (*run)(const GemmInt8&, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch);
};

// Null where this build or machine lacks the level.
const GemmInt8Kernels* gemm_int8_kernels(Isa isa);

// Size of all panels, in one packing for all levels: [panel][k / group][block][group], k rounded up to whole groups,
// with zeros past column n and past k.
size_t gemm_int8_packed_bytes(int n, int k);
// Packs weights[n][k], which have `stride` bytes from row to row.
void gemm_int8_pack(int n, int k, const int8_t* weights, ptrdiff_t stride, int8_t* packed);
bool gemm_int8_is_narrow(const int8_t* packed, size_t bytes);

}  // namespace softneuro
