// conv_first by Winograd's method along rows: a kernel row of stride s is s sums of stride 1 over every s-th sample,
// each with its share of the taps, and four neighbouring outputs of such a sum take taps + 3 products
// (kernels/winograd). Seven taps of stride 2 take 13 products where the plain sum takes 28, three of stride 1 take 6
// instead of 12. Vertical taps and channels are summed before decoding. Arguments and layouts: conv_first.h; no
// dilation. Infinities, NaN and overflow in the samples of four outputs reach all of these.
#pragma once

#include "kernels/conv_first/conv_first.h"
#include "kernels/winograd/transform.h"

namespace softneuro {

struct ConvFirstWinogradKernels {
  int block;                                          // c
  bool (*has_transform)(int kernel_w, int stride_w);  // whether the others may be called
  size_t (*scratch_bytes)(const ConvFirstArgs&);      // as ConvFirstKernels'
  void (*run)(const ConvFirstArgs&, int row_begin, int row_end, void* scratch);
};

// Null where this build or machine lacks the level.
const ConvFirstWinogradKernels* conv_first_winograd_kernels(Isa isa);

size_t conv_first_winograd_packed_size(const ConvFirstArgs& sizes, int block);  // floats
// From [out_channels][in_channels][kernel_h][kernel_w] to [block][r][in channel][position][lane], transformed in
// double.
void conv_first_winograd_pack(const ConvFirstArgs& sizes, int block, const float* weights, float* packed);

// Relative L2 error on data without structure; see winograd_error.
double conv_first_winograd_error(const ConvFirstArgs& sizes);

// A kernel row: its sums are the phases.
constexpr WinogradAxis conv_first_winograd_axis(int kernel, int stride) { return {4, kernel, stride}; }

}  // namespace softneuro
