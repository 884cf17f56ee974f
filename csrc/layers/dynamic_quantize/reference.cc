#include <algorithm>

#include "layers/dynamic_quantize/dynamic_quantize.h"

namespace softneuro {

void dynamic_quantize_reference(const Layer& layer, std::span<const RefTensor> in, std::span<const RefTensor> outs) {
  const DynamicQuantizeParams p = dynamic_quantize_params(layer, in[0].shape);
  for (int64_t row = 0; row < p.rows; ++row) {
    const double* x = in[0].data + row * p.c;
    const QuantizeSteps q = p.steps(reference_range(x, p.c));
    const std::vector<double> steps = reference_steps(q, x, p.c);
    std::copy(steps.begin(), steps.end(), outs[0].data + row * p.c);
    outs[1].data[row] = static_cast<double>(q.scale);
    outs[2].data[row] = q.zero;
  }
}

}  // namespace softneuro
