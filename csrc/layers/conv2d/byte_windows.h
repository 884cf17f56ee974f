// Convolutions of bytes whose channels are side by side, as products of rows: windows of an image, and filters.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/conv2d/conv2d.h"
#include "layers/quantized/int8.h"

namespace softneuro {

inline Int8Shape int8_shape(const Conv2dParams& p) { return {p.groups, p.group_k(), p.group_c() * p.kh * p.kw}; }

// The layer's weights as [outputs][tap][channel].
std::vector<int8_t> filter_rows(const Problem& problem, const Conv2dParams& p);

class ByteWindows {
 public:
  ByteWindows() = default;
  // row: bytes from row to row, at least those of a window.
  ByteWindows(const Conv2dParams& p, int64_t row) : p_(p), row_(row) {}

  // Bytes of scratch that so many rows take.
  size_t bytes(int64_t rows) const;
  // Rows [kh][kw][c] of output pixels, with zeros (of no account) behind. src: of a group in an image, of which bytes
  // may be read up to src_end. What lies outside the image is `zero`.
  void copy(const uint8_t* src, const uint8_t* src_end, uint8_t zero, Range pixels, uint8_t* to) const;

 private:
  Conv2dParams p_;
  int64_t row_ = 0;
};

}  // namespace softneuro
