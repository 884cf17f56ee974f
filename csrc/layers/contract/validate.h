// What the infer functions of several layer types check alike. All throw Error naming the value that is wrong.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/contract/layer.h"

namespace softneuro {

void expect_inputs(std::span<const TensorDesc> in, size_t count);
void expect_rank(const Shape& shape, int rank);
// 0 <= axis < rank.
void expect_axis(std::string_view attribute, int64_t axis, int rank);
void expect_no_weights(const Layer& layer);

// A list attribute of exactly `count` values in [least, 2^31).
std::vector<int64_t> expect_list(std::string_view attribute, std::vector<int64_t> values, size_t count, int64_t least);
template <size_t n>
std::array<int64_t, n> fixed_list(std::string_view attribute, std::vector<int64_t> values, int64_t least) {
  values = expect_list(attribute, std::move(values), n, least);
  std::array<int64_t, n> fixed;
  for (size_t i = 0; i < n; ++i) fixed[i] = values[i];
  return fixed;
}

// "[1,2]" for messages.
std::string list_text(std::span<const int64_t> values);

}  // namespace softneuro
