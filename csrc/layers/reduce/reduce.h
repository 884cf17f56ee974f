// reduce: mean, sum, maximum, minimum or a norm over axes.
#pragma once

#include <array>

#include "kernels/reduce/reduce.h"
#include "layers/contract/layer.h"

namespace softneuro {

struct ReduceParams {
  ReduceOp op = ReduceOp::sum;
  bool mean = false;  // op is sum; the result is divided by count
  bool root = false;  // op is squares; the result is the root of their sum
  bool keepdim = false;
  std::array<bool, Shape::max_rank> reduced{};  // per axis
  int64_t count = 1;                            // elements behind one result
  Shape out;
};

// Throws Error about the function, axes that are not the shape's own or given twice, and the maximum or minimum of
// nothing.
ReduceParams reduce_params(const Layer& layer, const Shape& shape);

}  // namespace softneuro
