#include <algorithm>
#include <cmath>

#include "layers/look_up/look_up.h"

namespace softneuro {

// Points lie evenly.
void look_up_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const std::vector<double> points = reference_weight(layer, "points"), values = reference_weight(layer, "values");
  const double step = points[1] - points[0];
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    const double index = std::nearbyint((in[0].data[i] - points[0]) / step);
    out.data[i] = values[static_cast<size_t>(std::clamp(index, 0.0, static_cast<double>(table_values - 1)))];
  }
}

}  // namespace softneuro
