// Where tiles of float sums write blocked pixels to, whatever type dst has.
#pragma once

#include "kernels/store/tiles.h"

namespace softneuro::SN_ISA {

// If all is float32, tiles write to dst and do what they can of the epilogue. Else they write bare sums to scratch, of
// which store_rows makes dst once they are complete: one kernel for all types. Blocks are of channels.
class PixelStore {
 public:
  // dst_block, sums_block: elements from block to block.
  SN_INLINE PixelStore(const Epilogue& epilogue, void* dst, size_t dst_block, float* sums, size_t sums_block)
      : epilogue_(epilogue),
        dst_(dst),
        sums_(sums),
        dst_block_(dst_block),
        sums_block_(sums_block),
        floats_(epilogue.is_float32()) {}

  // The block and pixel that the sums in scratch begin with.
  SN_INLINE void begin(int block, int pixel) { first_block_ = block, first_pixel_ = pixel; }

  // What tiles do.
  SN_INLINE size_t block() const { return floats_ ? dst_block_ : sums_block_; }
  SN_INLINE const Activation* activation() const { return floats_ ? &epilogue_.activation : &none_; }
  SN_INLINE bool has_residual() const { return floats_ && epilogue_.residual.data != nullptr; }
  SN_INLINE const float* bias(int block) const {
    return floats_ && epilogue_.bias != nullptr ? epilogue_.bias + block * lanes : nullptr;
  }
  SN_INLINE float* dst(int block, int pixel) const {
    if (floats_) return static_cast<float*>(dst_) + index(block, pixel);
    return sums_ + (block - first_block_) * sums_block_ + static_cast<size_t>(pixel - first_pixel_) * lanes;
  }
  SN_INLINE const float* residual(int block, int pixel) const {
    return has_residual() ? epilogue_.residual.f32() + index(block, pixel) : nullptr;
  }

  // What they left to do, of `channels` of the block.
  SN_INLINE void finish(int block, int pixel, int pixels, int channels) const {
    if (floats_) return finish_rest(epilogue_.activation, dst(block, pixel), pixels, channels);
    store_rows(
        store_pixels(epilogue_, dst(block, pixel), dst_, block * lanes, index(block, pixel), pixels, channels, lanes));
  }

 private:
  SN_INLINE size_t index(int block, int pixel) const { return block * dst_block_ + static_cast<size_t>(pixel) * lanes; }

  static constexpr Activation none_{};
  const Epilogue& epilogue_;
  void* dst_;
  float* sums_;
  size_t dst_block_, sums_block_;
  bool floats_;
  int first_block_ = 0, first_pixel_ = 0;
};

}  // namespace softneuro::SN_ISA
