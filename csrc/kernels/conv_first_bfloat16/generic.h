// conv_first_bfloat16: windows to the planes of conv_bfloat16. Contract: conv_first_bfloat16.h.
#pragma once

#include <cstring>

#include "base/lines.h"
#include "kernels/conv_bfloat16/planes.h"
#include "kernels/conv_first_bfloat16/conv_first_bfloat16.h"
#include "kernels/conv_first_bfloat16/windows.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace conv_first_bfloat16 {

using conv_bfloat16::row_bytes, conv_bfloat16::Splitter, conv_bfloat16::split_any;

constexpr size_t pair_bytes = 4;  // of two samples side by side

inline const ConvBfloat16Kernels& products() { return *conv_bfloat16_kernels(Isa::SN_ISA); }

// Two rows of samples split side by side, part by part, with the padding in place.
struct SplitRows {
  int columns;
  size_t part, pair;  // bytes of one part of two rows, and of all

  SplitRows(const ConvFirstArgs& s, int parts)
      : columns(round_up((s.out_w - 1) * s.stride_w + s.kernel_w, lanes)),
        part(static_cast<size_t>(columns) * pair_bytes),
        pair(part * parts) {}
};

// Runs are read a vector at a time, from before their first pair to behind their last.
constexpr size_t margin = row_bytes;

struct Scratch {
  char *rows, *planes;
  float *sums, *bias, *zeros;  // zeros: a row of samples
  size_t bytes = 0;

  Scratch(const ConvFirstArgs& s, int parts, char* memory) {
    const auto take = [&](size_t count) {
      char* at = memory + bytes;
      bytes += round_to_line(count);
      return at;
    };
    rows = take(SplitRows(s, parts).pair * window_row_pairs(s) + 2 * margin) + margin;
    sums = reinterpret_cast<float*>(take(products().sums_bytes));
    bias = reinterpret_cast<float*>(take(round_up(s.out_channels, lanes) * sizeof(float)));
    zeros = reinterpret_cast<float*>(take(s.w * sizeof(float)));
    const int block_rows = s.row_block < s.out_h ? s.row_block : s.out_h;
    planes = take(products().planes_bytes(window_shape(s, lanes, parts), block_rows * s.out_w));
  }
};

// So many vectors of samples of two rows; part: bytes from part to part.
template <int parts>
SN_INLINE void split_vectors(const float* first, const float* second, int vectors, char* to, size_t part) {
  const size_t step = part / sizeof(uint16_t);
  conv_bfloat16::split_some<row_bytes>(
      {first, lanes, 0, vectors}, to,
      [&](Splitter& splitter, const float* src, uint16_t* row)
          __attribute__((always_inline)) { splitter.split<parts>(src, second + (src - first), row, step); },
      [&](const float* src, uint16_t* row) { split_any<parts>(src, second + (src - first), row, step); });
}

template <int parts>
[[gnu::flatten]] void split_rows(const ConvFirstArgs& s, const SplitRows& layout, const float* first,
                                 const float* second, char* to) {
  // The vectors that end before the first sample, or with one behind the last, are put together.
  const int vectors = layout.columns / lanes, before = ceil_div(s.pad_left, lanes);
  const int in_image = (s.w + s.pad_left) / lanes;
  const int begin = before < vectors ? before : vectors;
  const int end = in_image < begin ? begin : in_image < vectors ? in_image : vectors;
  const auto edge = [&](int vector) {
    float padded[2][lanes];
    for (int i = 0; i < lanes; ++i) {
      const int x = vector * lanes + i - s.pad_left;
      const bool inside = x >= 0 && x < s.w;
      padded[0][i] = inside ? first[x] : 0, padded[1][i] = inside ? second[x] : 0;
    }
    split_vectors<parts>(padded[0], padded[1], 1, to + vector * row_bytes, layout.part);
  };
  for (int vector = 0; vector < begin; ++vector) edge(vector);
  if (begin < end) {
    const int x = begin * lanes - s.pad_left;
    split_vectors<parts>(first + x, second + x, end - begin, to + begin * row_bytes, layout.part);
  }
  for (int vector = end; vector < vectors; ++vector) edge(vector);
}

// All rows that the windows of output row y are of.
template <int parts>
inline void split_row(const ConvFirstArgs& s, const SplitRows& layout, int y, const float* zeros, char* to) {
  const auto source = [&](int row) {
    if (row >= window_rows(s)) return zeros;
    const int at = y * s.stride_h - s.pad_top + row % s.kernel_h * s.dilation_h;
    const auto number = static_cast<size_t>(row / s.kernel_h) * s.h + at;
    return at >= 0 && at < s.h ? s.src + number * s.w : zeros;
  };
  for (int row = 0; row < window_rows(s); row += 2, to += layout.pair) {
    split_rows<parts>(s, layout, source(row), source(row + 1), to);
  }
}

// Pairs of a run that belong in one row of a tile: `from` is where lane 0 would be read.
struct Piece {
  const char* from;
  int first, count;  // lanes
};

#if SN_LEVEL == SN_LEVEL_amx

class Row {
 public:
  SN_INLINE void take(const Piece& piece, size_t offset) {
    const auto lanes_of = static_cast<__mmask16>(((1u << piece.count) - 1) << piece.first);
    value_ = _mm512_mask_loadu_epi32(value_, lanes_of, piece.from + offset);
  }
  SN_INLINE void put(char* to) const { _mm512_storeu_si512(to, value_); }

 private:
  __m512i value_ = _mm512_setzero_si512();
};

#else

class Row {
 public:
  SN_INLINE void take(const Piece& piece, size_t offset) {
    const size_t at = piece.first * pair_bytes;
    std::memcpy(bytes_ + at, piece.from + offset + at, piece.count * pair_bytes);
  }
  SN_INLINE void put(char* to) const { std::memcpy(to, bytes_, row_bytes); }

 private:
  char bytes_[row_bytes] = {};
};

#endif

// One row of one part of `pixels` windows, `pixel` bytes apart, from `count` pieces.
template <int count>
inline void put_rows(const Piece (&pieces)[lanes], int pixels, size_t step, char* to, size_t pixel) {
  Piece own[count];
  unroll<count>([&](auto i) { own[i] = pieces[i]; });
  for (size_t offset = 0; pixels > 0; --pixels, offset += step, to += pixel) {
    Row row;
    unroll<count>([&](auto i) { row.take(own[i], offset); });
    row.put(to);
  }
}

// The windows of an output row to a pixel each of the planes, whose blocks are `plane` bytes apart.
template <int parts>
inline void put_windows(const ConvFirstArgs& s, const SplitRows& layout, const char* rows, char* to, size_t plane) {
  const int pairs = window_row_pairs(s) * s.kernel_w;
  for (int begin = 0; begin < pairs; begin += lanes, to += plane) {
    const int end = begin + lanes < pairs ? begin + lanes : pairs;
    for (int part = 0; part < parts; ++part) {
      Piece pieces[lanes] = {};
      int count = 0;
      for (int n = begin; n < end; ++count) {
        const int run = n / s.kernel_w, tap = n % s.kernel_w;
        const int left = s.kernel_w - tap < end - n ? s.kernel_w - tap : end - n;
        pieces[count] = {
            rows + run * layout.pair + part * layout.part + (tap - (n - begin)) * static_cast<int>(pair_bytes),
            n - begin, left};
        n += left;
      }
      unroll<lanes>([&](auto i) {
        if (count == i + 1) {
          put_rows<i + 1>(pieces, s.out_w, s.stride_w * pair_bytes, to + part * row_bytes, parts * row_bytes);
        }
      });
    }
  }
}

template <int parts>
inline size_t scratch_bytes(const ConvFirstArgs& s) {
  return Scratch(s, parts, nullptr).bytes;
}

template <int parts>
inline void run(const ConvFirstArgs& s, int row_begin, int row_end, void* memory) {
  const Scratch scratch(s, parts, static_cast<char*>(memory));
  const SplitRows layout(s, parts);
  std::memset(scratch.zeros, 0, s.w * sizeof(float));
  ConvBfloat16Args args{};
  args.shape = window_shape(s, lanes, parts);
  args.weights = s.weights;
  args.dst = s.dst;
  args.epilogue = s.epilogue;
  if (s.epilogue.bias == nullptr) {
    for (int k = 0; k < s.out_channels; k += lanes) store(scratch.bias + k, zero());
    args.epilogue.bias = scratch.bias;
  }
  const int block_rows = s.row_block < s.out_h ? s.row_block : s.out_h;
  args.rows = block_rows * s.out_w;
  const conv_bfloat16::Planes planes(args.shape, args.rows);
  const int panels = conv_bfloat16_panels(args.shape, lanes);
  for (int row = row_begin; row < row_end; row += block_rows) {
    const int end = row_end - row < block_rows ? row_end : row + block_rows;
    for (int y = row; y < end; ++y) {
      split_row<parts>(s, layout, y, scratch.zeros, scratch.rows);
      put_windows<parts>(s, layout, scratch.rows, scratch.planes + (y - row) * s.out_w * planes.pixel, planes.pair);
    }
    products().multiply_column(args, 0, panels, row * s.out_w, row * s.out_w, end * s.out_w, scratch.planes,
                               scratch.sums);
  }
}

}  // namespace conv_first_bfloat16
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvFirstBfloat16Kernels, conv_first_bfloat16) = {
    .block = SN_ISA::lanes,
    .two_parts = {SN_ISA::conv_first_bfloat16::scratch_bytes<2>, SN_ISA::conv_first_bfloat16::run<2>},
    .three_parts = {SN_ISA::conv_first_bfloat16::scratch_bytes<3>, SN_ISA::conv_first_bfloat16::run<3>},
};

}  // namespace softneuro
