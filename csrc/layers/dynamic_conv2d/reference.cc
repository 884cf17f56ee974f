#include <algorithm>
#include <cmath>
#include <limits>

#include "layers/dynamic_conv2d/dynamic_conv2d.h"

namespace softneuro {

void conv2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

void dynamic_conv2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const DynamicConv2dParams p = dynamic_conv2d_params(layer, {in[0].shape});
  const int64_t count = in[0].shape.elements();
  const QuantizeSteps q = p.steps(reference_range(in[0].data, count));
  if (std::isnan(q.scale)) {  // even where there is nothing but padding
    std::fill_n(out.data, out.shape.elements(), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  std::vector<double> x = reference_steps(q, in[0].data, count);
  for (double& step : x) step *= static_cast<double>(q.scale);
  const RefTensor rounded{in[0].shape, x.data()};
  conv2d_reference(plain_conv2d(layer), {&rounded, 1}, out);
}

}  // namespace softneuro
