#include "tune/calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tune/calibrate/fit_methods.h"
#include "tune/records/record_text.h"

namespace softneuro {
namespace {

constexpr std::pair<std::string_view, FitMethod> fit_methods[] = {
    {"min_max", FitMethod::min_max},       {"moving_average", FitMethod::moving_average},
    {"percentile", FitMethod::percentile}, {"mse", FitMethod::mse},
    {"entropy", FitMethod::entropy},       {"best", FitMethod::best}};

std::string known_methods() {
  std::string names;
  for (const auto& [name, method] : fit_methods) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

bool is_percentile(double value) { return value > 50 && value <= 100; }

[[noreturn]] void refuse_percentile(std::string_view text) {
  throw Error("'" + std::string(text) + "' is no percentile", "calibration",
              "give more than 50 and at most 100, for instance percentile:99.9");
}

}  // namespace

FitSettings FitSettings::parse(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view wanted = text.substr(0, colon);
  const auto* found = std::find_if(std::begin(fit_methods), std::end(fit_methods),
                                   [&](const auto& known) { return known.first == wanted; });
  const bool known = found != std::end(fit_methods);
  if (!known || (colon != std::string_view::npos && found->second != FitMethod::percentile)) {
    throw Error("there is no method '" + std::string(text) + "'", "calibration",
                "known are " + known_methods() + "; a percentile may be given: percentile:99.9");
  }
  FitSettings settings{.method = found->second};
  if (colon == std::string_view::npos) return settings;
  const auto percentile = parse_double(text.substr(colon + 1));
  if (!percentile || !is_percentile(*percentile)) refuse_percentile(text.substr(colon + 1));
  settings.percentile = *percentile;
  return settings;
}

std::string FitSettings::str() const {
  const auto* found = std::find_if(std::begin(fit_methods), std::end(fit_methods),
                                   [&](const auto& known) { return known.second == method; });
  std::string text(found->first);
  if (method == FitMethod::percentile) text += ":" + exact_number(percentile);
  return text;
}

std::vector<FitSettings> fits_to_try(const FitSettings& settings) {
  if (settings.method != FitMethod::best) return {settings};
  return {{FitMethod::percentile, 99.99}, {FitMethod::min_max}, {FitMethod::percentile, 99.9}, {FitMethod::mse}};
}

ValueRange fit(const BlobStatistics& statistics, const FitSettings& settings) {
  switch (settings.method) {
    case FitMethod::best:
      return fit(statistics, fits_to_try(settings).front());
    case FitMethod::moving_average:
      return statistics.average();
    case FitMethod::percentile:
      if (!is_percentile(settings.percentile)) refuse_percentile(exact_number(settings.percentile));
      return fit_percentile(statistics, settings.percentile);
    case FitMethod::mse:
      return fit_mse(statistics);
    case FitMethod::entropy:
      return fit_entropy(statistics);
    case FitMethod::min_max:
      break;
  }
  return statistics.range();
}

Quantization grid_of(const ValueRange& range) {
  if (!std::isfinite(range.least) || !std::isfinite(range.most) || range.least > range.most) {
    throw Error("from " + exact_number(static_cast<double>(range.least)) + " to " +
                    exact_number(static_cast<double>(range.most)) + " is no range",
                "calibration", "give two finite numbers, the lesser one first");
  }
  Quantization grid;  // as it begins, of unsigned bytes per tensor that are rounded after a division
  const double low = std::min(0.0, static_cast<double>(range.least));
  const double high = std::max(0.0, static_cast<double>(range.most));
  // Any step is right for zeros; one of 1 changes no product of steps, such as that of a bias.
  if (low == high) {
    grid.scales = {1};
    grid.zero_points = {0};
    return grid;
  }
  // A smaller one, or its product with another, might not be a normal number, nor its reciprocal a finite one.
  constexpr double least_step = 0x1p-100;
  const int steps = grid.most - grid.least;
  double step = std::max((high - low) / steps, least_step);
  const int zero = std::clamp(static_cast<int>(std::nearbyint(-low / step)), 0, steps);
  // No point of the grid may be infinite when it becomes a float again.
  step = std::min(step, static_cast<double>(std::numeric_limits<float>::max()) / std::max(zero, steps - zero));
  auto scale = static_cast<float>(step);
  if (!std::isfinite(scale * static_cast<float>(std::max(zero, steps - zero)))) scale = std::nextafter(scale, 0.0f);
  grid.scales = {scale};
  grid.zero_points = {zero};
  return grid;
}

}  // namespace softneuro
