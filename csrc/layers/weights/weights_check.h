// What the infer functions of layers with weights of one shape check alike.
#pragma once

#include <initializer_list>
#include <string_view>

#include "layers/contract/layer.h"

namespace softneuro {

// Throws Error unless the layer has every `required` weight, no role beyond those and `optional`, and all are of
// `shape`.
void expect_weights(const Layer& layer, std::initializer_list<std::string_view> required,
                    std::initializer_list<std::string_view> optional, const Shape& shape);

// C of x[N,C,...]. Throws Error below rank 2.
int64_t channel_count(const TensorDesc& x);
// Throws Error unless there is exactly one input; returns it.
const TensorDesc& only_input(std::span<const TensorDesc> in);
// The attribute `eps`. Throws Error unless it is finite and not negative.
double epsilon(const Layer& layer);

}  // namespace softneuro
