// conv_depthwise_int8 over Vi. Four rows of taps are one product of quads: a column's quads serve all outputs of a tile
// that it is a tap of. Contract: conv_depthwise_int8.h.
#pragma once

#include "kernels/conv_depthwise_int8/conv_depthwise_int8.h"
#include "kernels/unroll.h"
#include "simd/bytes.h"
#include "simd/dot4.h"
#include "simd/elements.h"

namespace softneuro::SN_ISA {
namespace conv_depthwise_int8 {

constexpr int block = vector_bytes;

// Rows of src under one row of outputs, a group of four at a time. Those outside the image are one pixel all over.
struct Rows {
  const uint8_t* row[4];
  ptrdiff_t step[4];  // from pixel to pixel
};

class Kernel {
 public:
  SN_INLINE Kernel(const ConvDepthwiseInt8& args, int index) : a_(args), index_(index) {
    groups_ = (a_.kh + 3) / 4;
    first_ = index * block;
    channels_ = a_.channels - first_ < block ? a_.channels - first_ : block;
    weights_ = a_.weights + static_cast<size_t>(index) * static_cast<size_t>(groups_ * a_.kw) * block * 4;
    for (int i = 0; i < block; ++i) zeros_[i] = a_.src_zero;
  }

  template <bool narrow>
  SN_INLINE void row(int y) const {
    const bool plain = a_.dw == 1;
    if (plain && a_.kw == 3 && a_.sw == 1) return tiles<narrow, 3, 1>(y);
    if (plain && a_.kw == 3 && a_.sw == 2) return tiles<narrow, 3, 2>(y);
    if (plain && a_.kw == 5 && a_.sw == 1) return tiles<narrow, 5, 1>(y);
    if (plain && a_.kw == 5 && a_.sw == 2) return tiles<narrow, 5, 2>(y);
    for (int x = 0; x < a_.ow; ++x) any<narrow>(y, x);
  }

 private:
  SN_INLINE Rows rows_of(int y, int group) const {
    Rows rows;
    for (int r = 0; r < 4; ++r) {
      const int ky = group * 4 + r, at = y * a_.sh - a_.pt + ky * a_.dh;
      const bool inside = ky < a_.kh && at >= 0 && at < a_.h;
      rows.row[r] = inside ? a_.src + static_cast<ptrdiff_t>(at) * a_.w * a_.channels + first_ : zeros_;
      rows.step[r] = inside ? a_.channels : 0;
    }
    return rows;
  }

  // Whether whole blocks may be read of pixels before `end` of the rows under row y: what comes behind a pixel's
  // channels is of no account.
  SN_INLINE bool may_read_whole(int y, int end) const {
    const int last = y * a_.sh - a_.pt + (a_.kh - 1) * a_.dh, row = last < a_.h ? last : a_.h - 1;
    const ptrdiff_t pixel = static_cast<ptrdiff_t>(row) * a_.w + (end < a_.w ? end : a_.w) - 1;
    return pixel * a_.channels + first_ + block <= a_.src_end - a_.src;
  }

  // The quads of one column of src; rows past the kernel's have zero weights.
  template <bool whole>
  SN_INLINE void column(const Rows& rows, int x, Vi (&quads)[4]) const {
    if (x < 0 || x >= a_.w) {
      const Vi outside = (Vi)(Vb{} + a_.src_zero);
      unroll<4>([&](auto k) { quads[k] = outside; });
      return;
    }
    Vb row[4];
    unroll<4>([&](auto r) {
      const uint8_t* p = rows.row[r] + x * rows.step[r];
      row[r] = whole || p == zeros_ ? load_row(p) : load_row_n(p, channels_);
    });
    interleave(row[0], row[1], row[2], row[3], quads);
  }

  template <bool narrow>
  SN_INLINE typename Dot4<narrow>::Weights weights(int group, int kx, int quad) const {
    return Dot4<narrow>::load(weights_ + ((group * a_.kw + kx) * 4 + quad) * block);
  }

  SN_INLINE void begin(Vi (&sum)[4]) const {
    for (int k = 0; k < 4; ++k) sum[k] = load(a_.start + first_ + k * lanes);
  }
  SN_INLINE void finish(int y, int x, const Vi (&sum)[4]) const {
    Vi steps[4];
    unroll<4>([&](auto k) {
      Vf value = fused(to_float(sum[k]), load(a_.scale + first_ + k * lanes), load(a_.bias + first_ + k * lanes));
      if (a_.large) value = clamp(value, set(-1e9f), set(1e9f));
      steps[k] = nearest(value);
    });
    uint8_t* dst = a_.dst + (static_cast<ptrdiff_t>(y) * a_.ow + x) * a_.channels + first_;
    const Vb bytes = put_together(steps[0], steps[1], steps[2], steps[3], {a_.zero, a_.least, a_.most});
    channels_ == block ? store_row(dst, bytes) : store_row_n(dst, bytes, channels_);
  }

  // `count` outputs side by side.
  template <bool narrow, int kw, int stride, int count, bool whole>
  SN_INLINE void tile(int y, int x) const {
    Vi sum[count][4];
    for (auto& one : sum) begin(one);
    for (int group = 0; group < groups_; ++group) {
      const Rows rows = rows_of(y, group);
      unroll<(count - 1) * stride + kw>([&](auto col) {
        Vi quads[4];
        column<whole>(rows, x * stride - a_.pl + col, quads);
        typename Dot4<narrow>::Bytes bytes[4];
        unroll<4>([&](auto k) { bytes[k] = Dot4<narrow>::bytes(quads[k]); });
        unroll<count>([&](auto t) {
          constexpr int kx = decltype(col)::value - decltype(t)::value * stride;
          if constexpr (kx >= 0 && kx < kw) {
            unroll<4>(
                [&](auto k) { sum[t][k] = Dot4<narrow>::add(sum[t][k], bytes[k], weights<narrow>(group, kx, k)); });
          }
        });
      });
    }
    unroll<count>([&](auto t) { finish(y, x + t, sum[t]); });
  }
  template <bool narrow, int kw, int stride>
  SN_INLINE void tiles(int y) const {
    constexpr int count = 4, columns = (count - 1) * stride + kw;
    if (a_.ow < count) {
      for (int x = 0; x < a_.ow; ++x) tile<narrow, kw, stride, 1, false>(y, x);
      return;
    }
    for (int at = 0; at < a_.ow; at += count) {
      const int x = at + count <= a_.ow ? at : a_.ow - count;  // the last ones may be made twice
      if (may_read_whole(y, x * stride - a_.pl + columns)) {
        tile<narrow, kw, stride, count, true>(y, x);
      } else {
        tile<narrow, kw, stride, count, false>(y, x);
      }
    }
  }

  template <bool narrow>
  SN_INLINE void any(int y, int x) const {
    Vi sum[4];
    begin(sum);
    for (int group = 0; group < groups_; ++group) {
      const Rows rows = rows_of(y, group);
      for (int kx = 0; kx < a_.kw; ++kx) {
        Vi quads[4];
        column<false>(rows, x * a_.sw - a_.pl + kx * a_.dw, quads);
        unroll<4>([&](auto k) {
          sum[k] = Dot4<narrow>::add(sum[k], Dot4<narrow>::bytes(quads[k]), weights<narrow>(group, kx, k));
        });
      }
    }
    finish(y, x, sum);
  }

  const ConvDepthwiseInt8& a_;
  int index_, groups_, first_, channels_;
  const int8_t* weights_;
  alignas(64) uint8_t zeros_[block];
};

template <bool narrow>
[[gnu::flatten]] inline void run_blocks(const ConvDepthwiseInt8& args, int block_begin, int block_end, int row_begin,
                                        int row_end) {
  for (int y = row_begin; y < row_end; ++y) {
    for (int index = block_begin; index < block_end; ++index) Kernel(args, index).template row<narrow>(y);
  }
}

inline void run(const ConvDepthwiseInt8& args, int block_begin, int block_end, int row_begin, int row_end) {
  if (dot4_likes_narrow && args.narrow) return run_blocks<true>(args, block_begin, block_end, row_begin, row_end);
  run_blocks<false>(args, block_begin, block_end, row_begin, row_end);
}

}  // namespace conv_depthwise_int8
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvDepthwiseInt8Kernels, conv_depthwise_int8) = {
    .block = SN_ISA::conv_depthwise_int8::block,
    .run = SN_ISA::conv_depthwise_int8::run,
};

}  // namespace softneuro
