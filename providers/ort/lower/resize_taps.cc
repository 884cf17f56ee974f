#include "providers/ort/lower/resize_taps.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace softneuro::ort {
namespace {

using Position = float (*)(const ResizeAxis& axis, float at);

// Positions by coordinate_transformation_mode. Where the host's constants are doubles, so are these.
float asymmetric(const ResizeAxis& axis, float at) { return at / axis.scale; }
float half_pixel(const ResizeAxis& axis, float at) { return (at + 0.5F) / axis.scale - 0.5F; }
float pytorch_half_pixel(const ResizeAxis& axis, float at) { return axis.out > 1 ? half_pixel(axis, at) : 0; }
float tf_half_pixel_for_nn(const ResizeAxis& axis, float at) { return (at + 0.5F) / axis.scale; }

float half_pixel_symmetric(const ResizeAxis& axis, float at) {
  const auto in = static_cast<float>(axis.in);
  const float adjustment = static_cast<float>(axis.out) / (axis.scale * in);
  const float offset = in / 2 * (1 - adjustment);
  return static_cast<float>(static_cast<double>(offset) +
                            (static_cast<double>(at) + 0.5) / static_cast<double>(axis.scale) - 0.5);
}

float align_corners(const ResizeAxis& axis, float at) {
  if (axis.out == 1) return 0;
  return at * (static_cast<float>(axis.in) - 1) / (static_cast<float>(axis.out) - 1);
}

float tf_crop_and_resize(const ResizeAxis& axis, float at) {
  const float last = static_cast<float>(axis.in) - 1;
  if (axis.out > 1) {
    return axis.begin * last + at * (axis.end - axis.begin) * last / (static_cast<float>(axis.out) - 1);
  }
  return static_cast<float>(0.5 * static_cast<double>(axis.begin + axis.end) * static_cast<double>(last));
}

constexpr struct {
  std::string_view name;
  Position position;
} modes[] = {
    {"asymmetric", asymmetric},
    {"half_pixel", half_pixel},
    {"half_pixel_symmetric", half_pixel_symmetric},
    {"pytorch_half_pixel", pytorch_half_pixel},
    {"tf_half_pixel_for_nn", tf_half_pixel_for_nn},
    {"align_corners", align_corners},
    {"tf_crop_and_resize", tf_crop_and_resize},
};

const auto* find_mode(std::string_view name) {
  return std::find_if(std::begin(modes), std::end(modes), [&](const auto& mode) { return mode.name == name; });
}

// An axis that is not scaled is taken as it is, whatever the mode.
float position(const ResizeAxis& axis, int64_t output) {
  const auto at = static_cast<float>(output);
  return axis.scale == 1 ? at : find_mode(axis.coordinates)->position(axis, at);
}

bool is_outside(const ResizeAxis& axis, float at) {
  return axis.coordinates == "tf_crop_and_resize" && (at < 0 || at > static_cast<float>(axis.in - 1));
}

}  // namespace

bool is_coordinate_mode(std::string_view name) { return find_mode(name) != std::end(modes); }

UpsampleAxis::Tap linear_tap(const ResizeAxis& axis, int64_t output) {
  const float real = position(axis, output);
  if (is_outside(axis, real)) return {-1, -1, 0, 0};
  const float at = std::clamp(real, 0.0F, static_cast<float>(axis.in - 1));
  const int64_t first = std::min(static_cast<int64_t>(at), axis.in - 1), second = std::min(first + 1, axis.in - 1);
  if (first == second) return {first, second, 0.5F, 0.5F};
  return {first, second, std::abs(at - static_cast<float>(second)), std::abs(at - static_cast<float>(first))};
}

UpsampleAxis::Tap nearest_tap(const ResizeAxis& axis, int64_t output, const std::string& rounding) {
  const float at = position(axis, output);
  if (is_outside(axis, at)) return {-1, -1, 0, 0};
  const bool half = at == static_cast<float>(static_cast<int64_t>(at)) + 0.5F;
  // Whether a position this near to a half counts as one depends on the runtime's version.
  constexpr float near = 2e-6F;
  if (rounding != "floor" && rounding != "ceil" && !half && std::abs(at - std::floor(at) - 0.5F) < near) {
    throw Error("a position is all but half way between two pixels");
  }
  const bool down = rounding == "floor" || (half && rounding != "round_prefer_ceil" && rounding != "ceil");
  const float nearest = down ? std::floor(at) : rounding == "ceil" ? std::ceil(at) : std::round(at);
  const int64_t source = std::clamp<int64_t>(static_cast<int64_t>(nearest), 0, axis.in - 1);
  return {source, source, 1, 0};
}

}  // namespace softneuro::ort
