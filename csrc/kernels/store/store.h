// The end of a kernel whose sums are in memory, best in L1 still: any type of sums, residuals and results, so that what
// has large kernels needs one instance of these only.
//
//   dst[i][j] = activation(scale * sums[i][j] + bias + residual[i][j]),   i < rows, j < columns
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct StoreRows {
  Epilogue epilogue;  // bias and scale: of column 0, or of row 0 where per_row; residual: at row 0, column 0
  bool per_row = false;
  const void* sums = nullptr;  // float, or int32_t if they are integers; may be dst if that is floats
  bool integers = false;
  ptrdiff_t sums_stride = 0;  // elements from row to row
  void* dst = nullptr;
  ptrdiff_t stride = 0;  // of dst and the residual
  int rows = 0, columns = 0;
  bool padded = false;  // rows of dst go on to a whole vector, with the value zero past the columns; else nothing is
                        // touched there
};

// Pixels of one block of channels, [pixel][lane]: the first channel has number `channel`, the first element of dst and
// residual comes `index` elements after what args have.
[[gnu::always_inline]] inline StoreRows store_pixels(const Epilogue& epilogue, const void* sums, void* dst, int channel,
                                                     size_t index, int pixels, int channels, int block) {
  return {.epilogue = epilogue.from(channel, index),
          .sums = sums,
          .sums_stride = block,
          .dst = element_at(dst, epilogue.dst.type, index),
          .stride = block,
          .rows = pixels,
          .columns = channels,
          .padded = true};
}

struct StoreKernels {
  void (*rows)(const StoreRows&);
};

// Null where this build or machine lacks the level.
const StoreKernels* store_kernels(Isa isa);

}  // namespace softneuro
