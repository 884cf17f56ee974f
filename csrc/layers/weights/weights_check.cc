#include "layers/weights/weights_check.h"

#include <algorithm>
#include <cmath>

namespace softneuro {

void expect_weights(const Layer& layer, std::initializer_list<std::string_view> required,
                    std::initializer_list<std::string_view> optional, const Shape& shape) {
  for (std::string_view role : required) layer.weight(role);
  for (const auto& [role, value] : layer.weights) {
    const auto is_role = [&role = role](std::string_view name) { return name == role; };
    if (std::none_of(required.begin(), required.end(), is_role) &&
        std::none_of(optional.begin(), optional.end(), is_role)) {
      throw Error("unknown weight '" + role + "'");
    }
    if (value->shape() != shape) {
      throw Error("weight '" + role + "' has shape " + value->shape().str() + ", not " + shape.str());
    }
  }
}

int64_t channel_count(const TensorDesc& x) {
  if (x.shape.rank() < 2) throw Error("the input must be [N,C,...], not of shape " + x.shape.str());
  return x.shape[1];
}

const TensorDesc& only_input(std::span<const TensorDesc> in) {
  if (in.size() != 1) throw Error("there must be one input, not " + std::to_string(in.size()));
  return in[0];
}

double epsilon(const Layer& layer) {
  const double eps = layer.attrs.real("eps");
  if (!std::isfinite(eps) || eps < 0) throw Error("eps is " + std::to_string(eps), {}, "give a number from 0 on");
  return eps;
}

}  // namespace softneuro
