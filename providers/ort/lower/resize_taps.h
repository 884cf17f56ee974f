// Where Resize takes its results from, along one axis, in the host's own arithmetic: in float32, and in its order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "layers/upsample/upsample.h"

namespace softneuro::ort {

struct ResizeAxis {
  std::string coordinates;  // coordinate_transformation_mode
  int64_t in, out;
  float scale;
  float begin, end;  // of the part that tf_crop_and_resize takes
};

bool is_coordinate_mode(std::string_view name);
UpsampleAxis::Tap linear_tap(const ResizeAxis& axis, int64_t output);
// rounding: nearest_mode.
UpsampleAxis::Tap nearest_tap(const ResizeAxis& axis, int64_t output, const std::string& rounding);

}  // namespace softneuro::ort
