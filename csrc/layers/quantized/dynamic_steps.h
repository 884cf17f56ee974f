// Layers that bring their input to eight bits by a scale that follows from its values.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/dynamic_rows/dynamic_rows.h"
#include "kernels/quantize/quantize.h"
#include "layers/contract/attrs.h"

namespace softneuro {

struct DynamicSteps {
  int32_t least = 0, most = 255;
  bool symmetric = false;  // zero is the middle of least and most
  bool reciprocal = false;
  float eps = 0;  // the least scale

  // The steps for values in a range that has zero in it, as hosts compute them in float32. If the range is not finite,
  // the scale is NaN, and so is what comes out.
  QuantizeSteps steps(const FloatRange& range) const;
  // Kernels take unsigned bytes: signed ones are moved up by so many.
  int32_t moved_by() const { return least < 0 ? 128 : 0; }
};

// Reads the attributes `least`, `most`, `symmetric`, `reciprocal` and `eps`. Throws Error about a value out of range.
DynamicSteps dynamic_steps(const Attrs& attrs);

// NaN is in both or none, and stays.
void include(FloatRange& range, const FloatRange& other);

// For references: the range of values and zero, and the whole steps, without zero point, that values become.
FloatRange reference_range(const double* x, int64_t count);
std::vector<double> reference_steps(const QuantizeSteps& steps, const double* x, int64_t count);

}  // namespace softneuro
