// conv_depthwise_int8 over Vi. Four rows of taps are one product of quads: a column's quads serve all outputs of a tile
// that it is a tap of. Contract: conv_depthwise_int8.h.
#pragma once

#include "kernels/conv_depthwise_int8/conv_depthwise_int8.h"
#include "kernels/store/policy.h"
#include "kernels/store/rest.h"
#include "kernels/unroll.h"
#include "simd/bytes.h"
#include "simd/dot4.h"

namespace softneuro::SN_ISA {
namespace conv_depthwise_int8 {

constexpr int block = vector_bytes;

// Rows of src under one row of outputs, a group of four at a time. Those outside the image are one pixel all over.
struct Rows {
  const uint8_t* row[4];
  ptrdiff_t step[4];  // from pixel to pixel
};

struct Call : ConvDepthwiseInt8 {
  ByteRange range;  // of results that are bytes, whose sums are scaled to steps
};

class Kernel {
 public:
  SN_INLINE Kernel(const Call& args, int index) : a_(args), index_(index) {
    groups_ = (a_.kh + 3) / 4;
    first_ = index * block;
    channels_ = a_.channels - first_ < block ? a_.channels - first_ : block;
    weights_ = a_.weights + static_cast<size_t>(index) * static_cast<size_t>(groups_ * a_.kw) * block * 4;
    for (int i = 0; i < block; ++i) zeros_[i] = a_.src_zero;
  }

  // A row of bytes.
  template <bool narrow>
  SN_INLINE void row(int y) const {
    const bool plain = a_.dw == 1;
    if (plain && a_.kw == 3 && a_.sw == 1) return tiles<narrow, 3, 1>(y);
    if (plain && a_.kw == 3 && a_.sw == 2) return tiles<narrow, 3, 2>(y);
    if (plain && a_.kw == 5 && a_.sw == 1) return tiles<narrow, 5, 1>(y);
    if (plain && a_.kw == 5 && a_.sw == 2) return tiles<narrow, 5, 2>(y);
    for (int x = 0; x < a_.ow; ++x) {
      Vi sum[4];
      any<narrow>(y, x, sum);
      finish(y, x, sum);
    }
  }

  // A row of any elements. Never in one function with rows of bytes: next to the call here, g++ 12 makes tiles of 3x3 a
  // third slower.
  template <bool narrow>
  SN_INLINE void row_of_any(int y) const {
    Epilogue e = a_.epilogue;
    const Vf least = set(e.rounded.least), most = set(e.rounded.most), step = set(e.rounded.step);
    e.scale = e.bias = nullptr;
    for (int x = 0; x < a_.ow; ++x) {
      Vi sum[4];
      any<narrow>(y, x, sum);
      alignas(64) float values[block], lane[lanes];
      for (int k = 0; k < 4; ++k) {
        const Vf value = scaled(sum[k], k);
        store(lane, e.rounded.step == 0 ? value : round(clamp(value, least, most)) * step);
        for (int i = 0; i < lanes; ++i) values[i / 4 * 16 + k * 4 + i % 4] = lane[i];  // as quads are taken
      }
      const auto at = static_cast<size_t>(dst_at(y, x));
      store_rows({.epilogue = e.from(0, at),
                  .sums = values,
                  .sums_stride = block,
                  .dst = element_at(a_.dst, e.dst.type, at),
                  .stride = a_.channels,
                  .rows = 1,
                  .columns = channels_});
    }
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
  SN_INLINE ptrdiff_t dst_at(int y, int x) const {
    return (static_cast<ptrdiff_t>(y) * a_.ow + x) * a_.channels + first_;
  }
  SN_INLINE Vf scaled(Vi sum, int quad) const {
    const int at = first_ + quad * lanes;
    return fused(to_float(sum), load(a_.epilogue.scale + at), load(a_.epilogue.bias + at));
  }
  SN_INLINE void finish(int y, int x, const Vi (&sum)[4]) const {
    Vi steps[4];
    unroll<4>([&](auto k) {
      Vf value = scaled(sum[k], k);
      if (a_.large) value = clamp(value, set(-1e9f), set(1e9f));
      steps[k] = nearest(value);
    });
    uint8_t* dst = static_cast<uint8_t*>(a_.dst) + dst_at(y, x);
    const Vb bytes = put_together(steps[0], steps[1], steps[2], steps[3], a_.range);
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
  SN_INLINE void any(int y, int x, Vi (&sum)[4]) const {
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
  }

  const Call& a_;
  int index_, groups_, first_, channels_;
  const int8_t* weights_;
  alignas(64) uint8_t zeros_[block];
};

template <bool narrow, bool bytes>
[[gnu::flatten]] void run_blocks(const Call& args, int block_begin, int block_end, int row_begin, int row_end) {
  for (int y = row_begin; y < row_end; ++y) {
    for (int index = block_begin; index < block_end; ++index) {
      if constexpr (bytes) Kernel(args, index).template row<narrow>(y);
      if constexpr (!bytes) Kernel(args, index).template row_of_any<narrow>(y);
    }
  }
}

template <bool narrow>
SN_INLINE void run_blocks(const Call& args, int block_begin, int block_end, int row_begin, int row_end) {
  const Epilogue& e = args.epilogue;
  const bool bytes = e.dst.type == DType::uint8 && e.dst.scale == 1 && e.residual.data == nullptr &&
                     e.rounded.step == 0 && is_clamp(e.activation.kind);
  (bytes ? run_blocks<narrow, true> : run_blocks<narrow, false>)(args, block_begin, block_end, row_begin, row_end);
}

inline void run(const ConvDepthwiseInt8& args, int block_begin, int block_end, int row_begin, int row_end) {
  const ElementFormat& to = args.epilogue.dst;
  const ClampBounds bounds = Writing<uint8_t>(to).bounds(clamp_bounds(args.epilogue.activation));
  const auto byte = [&](float steps) { return to.zero + static_cast<int>(__builtin_rintf(steps)); };
  const Call call{args, {to.zero, byte(bounds.lo), byte(bounds.hi)}};
  if (dot4_likes_narrow && args.narrow) return run_blocks<true>(call, block_begin, block_end, row_begin, row_end);
  run_blocks<false>(call, block_begin, block_end, row_begin, row_end);
}

}  // namespace conv_depthwise_int8
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvDepthwiseInt8Kernels, conv_depthwise_int8) = {
    .block = SN_ISA::conv_depthwise_int8::block,
    .run = SN_ISA::conv_depthwise_int8::run,
};

}  // namespace softneuro
