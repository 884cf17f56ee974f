// Packed weights that are one block of floats.
#pragma once

#include "base/arena.h"
#include "layers/routine.h"

namespace softneuro {

class PackedFloats final : public Packed {
 public:
  explicit PackedFloats(int64_t count) : buffer_(static_cast<size_t>(count) * sizeof(float)) {}
  size_t bytes() const override { return buffer_.size(); }
  float* data() const { return buffer_.f32(); }

 private:
  AlignedBuffer buffer_;
};

inline const float* packed_floats(const Packed* packed) {
  return packed == nullptr ? nullptr : static_cast<const PackedFloats*>(packed)->data();
}

}  // namespace softneuro
