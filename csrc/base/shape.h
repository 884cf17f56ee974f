// A tensor's logical dimensions, at most eight, kept inline.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/error.h"

namespace softneuro {

class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) {
    if (dims.size() > max_rank) throw Error("rank " + std::to_string(dims.size()) + " is above the limit of 8");
    for (int64_t dim : dims) push_back(dim);
  }

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t& operator[](int axis) { return dims_[static_cast<size_t>(axis)]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  void push_back(int64_t dim) {
    if (rank_ == max_rank) throw Error("a tensor has more than 8 dimensions");
    dims_[static_cast<size_t>(rank_++)] = dim;
  }
  // Product of dims [from, to); 1 for an empty range.
  int64_t product(int from, int to) const {
    int64_t total = 1;
    for (int axis = from; axis < to; ++axis) total *= (*this)[axis];
    return total;
  }
  int64_t elements() const { return product(0, rank_); }
  std::string str() const;  // "1x64x56x56"; "scalar" for rank 0
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, max_rank> dims_{};
  int rank_ = 0;
};

}  // namespace softneuro
