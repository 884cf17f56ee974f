// Memory of the core: aligned for the widest vectors, and an Error instead of a bad_alloc.
#pragma once

#include <cstddef>
#include <utility>

namespace softneuro {

// An owned, uninitialised block of memory, aligned to 64 bytes; from 2 MiB on it is aligned to 2 MiB and huge pages are
// asked for, smaller ones share huge pages. Zero bytes give an empty buffer. Throws Error, naming the size, when memory
// is short.
class AlignedBuffer {
 public:
  static constexpr size_t alignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  void* data() const { return data_; }
  float* f32() const { return static_cast<float*>(data_); }
  size_t size() const { return size_; }  // bytes

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace softneuro
