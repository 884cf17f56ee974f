// Matrix product on row-major matrices with row strides; b is packed once and for all, or by the caller just before.
//
//   dst[i][j] = act(bias + residual[i][j] + scale * sum over l of a[i][l] * b[l][j]),   i < m, j < n, l < k
//
// Linear layers and nhwc 1x1 convolutions: a is the input, b the transposed weights, bias per column. im2col: a is the
// weights, b the columns (packed panel by panel), bias per row. c is the level's number of lanes: 16, 8 or 4.
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

// How the work is cut; every value is right for every shape, speed differs.
struct GemmTiling {
  int panel = 2;        // vectors of columns that share a pass over a: 1 ... max_panel
  int row_block = 112;  // rows of a packed at a time, shared by all panels
  int k_block = 2048;   // products summed in one go, at most; partial sums wait in dst, which costs most
};

struct GemmArgs {
  int m = 0, n = 0, k = 0;
  GemmTiling tiling;
  const float* a = nullptr;  // [m][k]
  ptrdiff_t a_stride = 0;    // elements from row to row, here and below
  const float* b = nullptr;  // of pack_b, all panels; 64-byte aligned runs best
  void* dst = nullptr;       // [m][n]; nothing past column n is touched
  ptrdiff_t dst_stride = 0;
  bool bias_per_row = false;
  bool accumulate = false;  // sums are added to the floats that dst holds; only if epilogue.is_float32()
  // Bias and scale: n floats, or m where bias_per_row; residual: with dst_stride. Unless it is_float32(), a k_block is
  // at least k, since sums do not wait in dst.
  Epilogue epilogue;
};

struct GemmKernels {
  int lanes;        // c
  int max_panel;    // largest tiling.panel
  int max_tile[4];  // rows per step by panel; [0] unused
  // Panels [panel_begin, panel_end) from b[k][n], or from b[n][k] if transposed, row stride b_stride, into
  // packed [panel][k][lane of panel], zero past column n. packed is the start of the first of these panels.
  void (*pack_b)(int n, int k, int panel, const float* b, ptrdiff_t b_stride, bool transposed, int panel_begin,
                 int panel_end, float* packed);
  // Bytes of scratch that run needs, 64-byte aligned.
  size_t (*scratch_bytes)(int m, int k, const GemmTiling&);
  // Panels [panel_begin, panel_end) of gemm_panels, rows [row_begin, row_end).
  void (*run)(const GemmArgs&, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch);
};

// Null where this build or machine lacks the level.
const GemmKernels* gemm_kernels(Isa isa);

int gemm_panels(int n, int lanes, int panel);
size_t gemm_packed_size(int n, int k, int lanes);                  // floats, all panels
size_t gemm_panel_offset(int k, int lanes, int panel, int index);  // floats from the start of packed to a panel

}  // namespace softneuro
