// From sums to outputs: conv_bfloat16's epilogue.
#pragma once

#include "kernels/conv_bfloat16/planes.h"
#include "kernels/finish_row.h"

namespace softneuro::SN_ISA {
namespace conv_bfloat16 {

// Sums that are still to be finished, a few vectors at each step of the next ones' products: tiles' units and vectors'
// work side by side.
class Unfinished {
 public:
  Unfinished(const ConvBfloat16Args& args, float* memory)
      : epilogue_(args.epilogue),
        bounds_(clamp_bounds(args.epilogue.activation)),
        costly_(!is_clamp(args.epilogue.activation.kind)),
        blocked_(args.dst_pixel == 0),
        pixel_(blocked_ ? lanes : args.dst_pixel),
        plane_(blocked_ ? static_cast<size_t>(args.shape.y.out) * args.shape.x.out * lanes : lanes),
        dst_(args.dst),
        sums_(memory),
        next_(memory + most_sums * tile_rows * lanes) {}

  // Where the next sums are stored, while the last are being finished.
  SN_INLINE float* next_sums() const { return next_; }

  // Those of m tiles of outputs from number `at` on and n output blocks, by block.
  template <int m, int n>
  SN_INLINE void add(const Band& band, int output_block, int at) {
    const ConvBfloat16Shape& s = band.args.shape;
    first_ = output_block * plane_ + static_cast<size_t>(band.row) * s.x.out * pixel_;
    channels_ = s.out_channels - output_block * lanes;
    rows_ = m * tile_rows;
    blocks_ = n;
    block_ = 0;
    width_ = band.planes.width;
    out_ = s.x.out;
    // Without gaps all outputs are one row.
    if (width_ == out_) width_ = out_ = band.rows * out_;
    first_y_ = at / width_, first_x_ = at % width_;
    last_y_ = s.x.out == out_ ? band.rows : 1;
    float* const sums = sums_;
    sums_ = next_;
    next_ = sums;
    begin_block();
  }

  SN_INLINE void step(int most) {
    while (block_ < blocks_) {
      const int left = row_ < rows_ && y_ < last_y_ ? out_ - x_ : 0, here = rows_ - row_ < left ? rows_ - row_ : left;
      if (here <= 0) {
        if (row_ < rows_ && y_ < last_y_) {
          row_ += width_ - x_, x_ = 0, ++y_;
        } else {
          ++block_;
          begin_block();
        }
        continue;
      }
      if (most <= 0) return;
      const int pixels = here < most ? here : most;
      finish_pixels(pixels);
      row_ += pixels, x_ += pixels, most -= pixels;
    }
  }
  void finish() { step(blocks_ * rows_); }

 private:
  SN_INLINE void begin_block() { row_ = 0, y_ = first_y_, x_ = first_x_; }

  SN_INLINE void finish_pixels(int pixels) {
    const size_t at = first_ + block_ * plane_ + (static_cast<size_t>(y_) * out_ + x_) * pixel_;
    const float* const from = sums_ + (block_ * rows_ + row_) * lanes;
    float* const to = dst_ + at;
    const int left = channels_ - block_ * lanes, channels = left < lanes ? left : lanes;
    const Vf lo = set(bounds_.lo), hi = set(bounds_.hi);
    if (channels < lanes && !blocked_) {
      for (int p = 0; p < pixels; ++p) {
        Vf sum = load(from + p * lanes);
        if (epilogue_.residual != nullptr) sum = sum + load_n(epilogue_.residual + at + p * pixel_, channels);
        store_n(to + p * pixel_, clamp(sum, lo, hi), channels);
      }
    } else if (epilogue_.residual != nullptr) {
      const float* const residual = epilogue_.residual + at;
      for (int p = 0; p < pixels; ++p) {
        store(to + p * pixel_, clamp(load(from + p * lanes) + load(residual + p * pixel_), lo, hi));
      }
    } else {
      for (int p = 0; p < pixels; ++p) store(to + p * pixel_, clamp(load(from + p * lanes), lo, hi));
    }
    if (blocked_) {
      if (costly_ || channels < lanes) finish_row(epilogue_.activation, to, pixels, channels);
    } else if (costly_) {
      for (int p = 0; p < pixels; ++p) {
        activate_row(to + p * pixel_, to + p * pixel_, static_cast<size_t>(channels), epilogue_.activation);
      }
    }
  }

  const Epilogue& epilogue_;
  ClampBounds bounds_;
  bool costly_, blocked_;
  size_t pixel_, plane_;  // floats from pixel to pixel and from block to block
  float *dst_, *sums_, *next_;
  size_t first_ = 0;           // where the band's first output of the first block is
  int channels_ = 0;           // from the first block on
  int rows_ = 0, blocks_ = 0;  // of sums; row by row of each block
  int width_ = 0, out_ = 0, last_y_ = 0, first_y_ = 0, first_x_ = 0;  // outputs as they are counted
  int block_ = 0, row_ = 0, y_ = 0, x_ = 0;                           // the next one's
};

}  // namespace conv_bfloat16
}  // namespace softneuro::SN_ISA
