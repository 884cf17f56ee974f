#include "layers/weights/weight_traits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/text.h"

namespace softneuro {
namespace {

// Fewer zeros never pay for a routine of their own, however they lie.
constexpr double least_zeros = 0.3;
constexpr double whole_blocks = 0.95;  // of the zeros that have to be in such for a pattern of blocks
constexpr double chance = 0.1;
constexpr int64_t least_elements = 1024;

// The weight as [rows][columns][inner], zeros as such.
struct Zeros {
  int64_t rows, columns, inner;
  const float* values;
  bool operator()(int64_t row, int64_t column, int64_t i) const {
    return values[(row * columns + column) * inner + i] == 0;
  }
};

// Least n such that no group of `of` neighbouring columns has more than n values; `of` if columns come out uneven.
int most_of(const Zeros& zeros, int of) {
  if (zeros.columns % of != 0) return of;
  int most = 0;
  for (int64_t row = 0; row < zeros.rows; ++row) {
    for (int64_t i = 0; i < zeros.inner; ++i) {
      for (int64_t column = 0; column < zeros.columns; column += of) {
        int count = 0;
        for (int64_t k = 0; k < of; ++k) count += zeros(row, column + k, i) ? 0 : 1;
        most = std::max(most, count);
        if (most == of) return most;
      }
    }
  }
  return most;
}

// Whether all zeros but a few are in whole blocks. Given up as soon as too many are not.
bool come_in_blocks(const Zeros& zeros, int64_t count, int64_t block_rows, int64_t block_columns) {
  const auto others = static_cast<int64_t>((1 - whole_blocks) * static_cast<double>(count));
  int64_t total = 0, seen = 0;
  const int64_t row_size = zeros.columns * zeros.inner;
  for (int64_t row = 0; row + block_rows <= zeros.rows; row += block_rows) {
    const float* const begin = zeros.values + row * row_size;
    seen += std::count(begin, begin + block_rows * row_size, 0.0F);
    for (int64_t column = 0; column + block_columns <= zeros.columns; column += block_columns) {
      for (int64_t i = 0; i < zeros.inner; ++i) {
        bool all = true;
        for (int64_t k = 0; all && k < block_rows * block_columns; ++k) {
          all = zeros(row + k / block_columns, column + k % block_columns, i);
        }
        if (all) total += block_rows * block_columns;
      }
    }
    if (seen - total > others) return false;
  }
  return count - total <= others;
}

// Whether enough blocks of so many rows and columns are zero for skipping them to pay.
bool has_zero_blocks(const Zeros& zeros, double share, bool in_blocks, int64_t rows, int64_t columns) {
  constexpr double least = 0.3, least_by_chance = 0.25;
  if (!in_blocks && std::pow(share, static_cast<double>(rows * columns)) < least_by_chance) return false;
  const int64_t row_size = zeros.columns * zeros.inner, blocks = (zeros.columns + columns - 1) / columns;
  int64_t total = 0, skipped = 0;
  std::vector<char> used;
  for (int64_t first = 0; first < zeros.rows; first += rows) {
    used.assign(static_cast<size_t>(blocks * zeros.inner), 0);
    for (int64_t row = first; row < std::min(first + rows, zeros.rows); ++row) {
      const float* from = zeros.values + row * row_size;
      for (int64_t column = 0; column < zeros.columns; ++column) {
        char* const block = used.data() + column / columns * zeros.inner;
        for (int64_t i = 0; i < zeros.inner; ++i) block[i] |= *from++ != 0;
      }
    }
    total += static_cast<int64_t>(used.size());
    skipped += std::count(used.begin(), used.end(), 0);
  }
  return static_cast<double>(skipped) >= least * static_cast<double>(total);
}

}  // namespace

bool WeightTraits::matter(const Shape& shape) { return shape.rank() >= 2 && shape.elements() >= least_elements; }

std::string WeightTraits::str() const {
  if (zeros < least_zeros) return {};
  std::string text = "[zeros=" + exact_number(std::round(zeros * 40) / 40);
  if (of > 0) text += "," + std::to_string(most) + ":" + std::to_string(of);
  if (block_rows * block_columns > 1) text += "," + std::to_string(block_rows) + "x" + std::to_string(block_columns);
  if (zero_vectors > 0) text += ",vectors=" + std::to_string(zero_vectors);
  if (zero_blocks) text += ",blocks";
  return text + "]";
}

WeightTraits WeightTraits::class_traits() const {
  if (zeros < least_zeros) return {};
  WeightTraits traits = *this;
  traits.zeros = std::round(zeros * 40) / 40;
  traits.constant = false;
  return traits;
}

WeightTraits find_traits(const Shape& shape, const float* values) {
  WeightTraits traits;
  const int64_t elements = shape.elements();
  if (elements == 0) return traits;
  const auto zero = std::count(values, values + elements, 0.0F);
  traits.zeros = static_cast<double>(zero) / static_cast<double>(elements);
  traits.constant = std::all_of(values, values + elements, [&](float value) { return value == values[0]; });
  if (traits.zeros < least_zeros || shape.rank() < 2) return traits;
  const Zeros zeros{shape[0], shape[1], shape.product(2, shape.rank()), values};
  constexpr std::array<std::array<int, 2>, 4> blocks{{{16, 1}, {1, 16}, {4, 1}, {1, 4}}};  // the largest first
  for (const auto& [rows, columns] : blocks) {
    if (!come_in_blocks(zeros, zero, rows, columns)) continue;
    traits.block_rows = rows, traits.block_columns = columns;
    break;
  }
  const bool in_blocks = traits.block_rows * traits.block_columns > 1;
  for (const int vector : {16, 8, 4}) {
    if (!has_zero_blocks(zeros, traits.zeros, in_blocks, vector, 1)) continue;
    traits.zero_vectors = vector;
    break;
  }
  traits.zero_blocks = traits.zero_vectors == 16 && has_zero_blocks(zeros, traits.zeros, in_blocks, 16, 4);
  // Where many more are zero than the pattern asks for, it holds by chance.
  const int most = most_of(zeros, 4);
  if (most < 4 && traits.zeros <= (4 - most) / 4.0 + chance) traits.most = most, traits.of = 4;
  return traits;
}

}  // namespace softneuro
