#include "layers/quantized/dynamic_steps.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace softneuro {

DynamicSteps dynamic_steps(const Attrs& attrs) {
  DynamicSteps p;
  const int64_t least = attrs.integer("least", 0), most = attrs.integer("most", 255);
  if (least < -128 || most > (least < 0 ? 127 : 255) || least > 0 || most <= 0) {
    throw Error("least and most are " + std::to_string(least) + " and " + std::to_string(most), {},
                "give a range of eight bits with zero in it");
  }
  p.least = static_cast<int32_t>(least), p.most = static_cast<int32_t>(most);
  p.symmetric = attrs.flag("symmetric", false);
  p.reciprocal = attrs.flag("reciprocal", false);
  const double eps = attrs.real("eps", 0);
  if (!std::isfinite(eps) || eps < 0) throw Error("eps is " + std::to_string(eps), {}, "give a number from 0 on");
  p.eps = static_cast<float>(eps);
  return p;
}

QuantizeSteps DynamicSteps::steps(const FloatRange& range) const {
  QuantizeSteps steps{.reciprocal = reciprocal, .zero = symmetric ? (least + most + 1) / 2 : least};
  steps.least = least, steps.most = most;
  const auto span = static_cast<float>(most - least);
  float scale = symmetric ? std::max(-range.least, range.most) / (span / 2) : (range.most - range.least) / span;
  if (scale < eps) scale = eps;
  if (scale == 0) scale = 1;
  steps.scale = std::isfinite(scale) ? scale : std::nanf("");
  if (!symmetric && std::isfinite(scale)) {
    const float zero = static_cast<float>(least) - std::nearbyint(range.least / scale);
    steps.zero = static_cast<int32_t>(std::clamp(zero, static_cast<float>(least), static_cast<float>(most)));
  }
  return steps;
}

void include(FloatRange& range, const FloatRange& other) {
  if (std::isnan(range.least)) return;
  if (!(other.least >= range.least)) range.least = other.least;
  if (!(other.most <= range.most)) range.most = other.most;
}

FloatRange reference_range(const double* x, int64_t count) {
  FloatRange range{0, 0};
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(x[i]);
    if (!std::isfinite(value)) return {std::nanf(""), std::nanf("")};
    range = {std::min(range.least, value), std::max(range.most, value)};
  }
  return range;
}

std::vector<double> reference_steps(const QuantizeSteps& q, const double* x, int64_t count) {
  std::vector<double> steps(static_cast<size_t>(count));
  const auto least = static_cast<float>(q.least - q.zero), most = static_cast<float>(q.most - q.zero);
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto value = static_cast<float>(x[i]);
    const float step = q.reciprocal ? value * (1 / q.scale) : value / q.scale;
    steps[i] = static_cast<double>(std::isnan(step) ? least : std::nearbyint(std::clamp(step, least, most)));
  }
  return steps;
}

}  // namespace softneuro
