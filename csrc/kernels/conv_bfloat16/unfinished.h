// Finishes sums to outputs: conv_bfloat16's epilogue.
#pragma once

#include "kernels/conv_bfloat16/planes.h"
#include "kernels/store/policy.h"
#include "kernels/store/rest.h"
#include "kernels/unroll.h"

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
        plane_(blocked_ ? plane_of(args) : lanes),
        dst_(args.dst),
        sums_(memory),
        next_(memory + most_sums * tile_rows * lanes) {}

  // Where the next sums are stored, while the last are being finished.
  SN_INLINE float* next_sums() const { return next_; }

  // Those of m tiles of outputs from number `at` on and n output blocks, by block.
  template <int m, int n>
  SN_INLINE void add(const Band& band, int output_block, int at) {
    const ConvBfloat16Shape& s = band.args.shape;
    channels_ = s.out_channels - output_block * lanes;
    rows_ = m * tile_rows;
    blocks_ = n;
    block_ = 0;
    width_ = band.planes.width;
    out_ = s.x.out;
    last_y_ = band.rows;
    // Without gaps all outputs are one row.
    const bool gaps = width_ != out_;
    if (!gaps) width_ = out_ = band.rows * out_, last_y_ = 1;
    first_y_ = gaps ? at / width_ : 0, first_x_ = at - first_y_ * width_;
    to_block_ = output_block * plane_ + static_cast<size_t>(band.row) * s.x.out * pixel_;
    float* const sums = sums_;
    sums_ = next_;
    next_ = sums;
    row_ = 0, y_ = first_y_, x_ = first_x_;
    run_ = 0;
  }

  // So many vectors, or a run's fewer last ones. A loop of any other number would end by surprise, which costs more
  // than its work beside tiles.
  static constexpr int chunk = 8;
  SN_INLINE void step() {
    if (run_ >= chunk && simple_) {
      finish_chunk();
    } else {
      finish_some();
    }
  }
  void finish() {
    while (run_ > 0 || find_run()) step();
  }

 private:
  static size_t plane_of(const ConvBfloat16Args& args) {
    return args.dst_plane != 0 ? args.dst_plane : static_cast<size_t>(args.shape.y.out) * args.shape.x.out * lanes;
  }

  // The next sums in a row whose outputs are in a row; false if there are no more.
  bool find_run() {
    for (; block_ < blocks_; ++block_, to_block_ += plane_, row_ = 0, y_ = first_y_, x_ = first_x_) {
      for (; row_ < rows_ && y_ < last_y_; row_ += width_ - x_, x_ = 0, ++y_) {
        const int left = out_ - x_, here = rows_ - row_ < left ? rows_ - row_ : left;
        if (here <= 0) continue;
        from_ = sums_ + (block_ * rows_ + row_) * lanes;
        to_ = to_block_ + (static_cast<size_t>(y_) * out_ + x_) * pixel_;
        run_ = here;
        row_ += here, x_ += here;
        const int others = channels_ - block_ * lanes;
        run_channels_ = others < lanes ? others : lanes;
        simple_ = blocked_ && !costly_ && run_channels_ == lanes && epilogue_.residual.f32() == nullptr;
        return true;
      }
    }
    return false;
  }

  SN_INLINE void advance(int pixels) { from_ += pixels * lanes, to_ += pixels * pixel_, run_ -= pixels; }

  SN_INLINE void finish_chunk() {
    const float* const from = from_;
    float* const to = dst_ + to_;
    const Vf lo = set(bounds_.lo), hi = set(bounds_.hi);
    unroll<chunk>([&](auto p) __attribute__((always_inline)) {
      Writing<float>().put(to + p * lanes, clamp(load(from + p * lanes), lo, hi));
    });
    advance(chunk);
  }

  // The next chunk, if there is one, whatever it needs.
  [[gnu::noinline]] void finish_some() {
    if (run_ == 0 && !find_run()) return;
    const int pixels = run_ < chunk ? run_ : chunk;
    finish_pixels(pixels);
    advance(pixels);
  }

  // Vectors' stores may alias anything: what the loops need is in variables of their own.
  void finish_pixels(int pixels) {
    const float* const from = from_;
    float* const to = dst_ + to_;
    const float* const residuals = epilogue_.residual.f32();
    const float* const residual = residuals != nullptr ? residuals + to_ : nullptr;
    const Vf lo = set(bounds_.lo), hi = set(bounds_.hi);
    const size_t pixel = pixel_;
    const int channels = run_channels_;
    const bool blocked = blocked_, costly = costly_;
    if (channels < lanes && !blocked) {
      for (int p = 0; p < pixels; ++p) {
        Vf sum = load(from + p * lanes);
        if (residual != nullptr) sum = sum + Reading<float>().value(residual + p * pixel, channels);
        Writing<float>().put(to + p * pixel, clamp(sum, lo, hi), channels);
      }
    } else if (residual != nullptr) {
      for (int p = 0; p < pixels; ++p) {
        Writing<float>().put(to + p * pixel,
                             clamp(load(from + p * lanes) + Reading<float>().value(residual + p * pixel), lo, hi));
      }
    } else if (blocked) {
      for (int p = 0; p < pixels; ++p) Writing<float>().put(to + p * lanes, clamp(load(from + p * lanes), lo, hi));
    } else {
      for (int p = 0; p < pixels; ++p) Writing<float>().put(to + p * pixel, clamp(load(from + p * lanes), lo, hi));
    }
    if (blocked) {
      if (costly || channels < lanes) finish_written(epilogue_.activation, !costly, to, pixels, channels);
    } else if (costly) {
      for (int p = 0; p < pixels; ++p) {
        activate_row(to + p * pixel, to + p * pixel, static_cast<size_t>(channels), epilogue_.activation);
      }
    }
  }

  const Epilogue& epilogue_;
  ClampBounds bounds_;
  bool costly_, blocked_;
  size_t pixel_, plane_;  // floats from pixel to pixel and from block to block
  float *dst_, *sums_, *next_;
  int channels_ = 0;                                                  // from the first block on
  int rows_ = 0, blocks_ = 0;                                         // of sums; row by row of each block
  int width_ = 0, out_ = 0, last_y_ = 0, first_y_ = 0, first_x_ = 0;  // outputs as they are counted
  int block_ = 0, row_ = 0, y_ = 0, x_ = 0;                           // where the next run begins
  size_t to_block_ = 0;                                               // where outputs of that block begin
  // What is left of a run: sums, outputs, channels that count.
  int run_ = 0, run_channels_ = 0;
  bool simple_ = false;  // clamped and no more
  const float* from_ = nullptr;
  size_t to_ = 0;
};

}  // namespace conv_bfloat16
}  // namespace softneuro::SN_ISA
