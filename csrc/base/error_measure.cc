#include "base/error_measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "base/error.h"

namespace softneuro {
namespace {

// What is within this of the host's error is no worse: another order of its own sums would change it as much.
constexpr double host_margin = 1.1;
constexpr int64_t block = 512;  // elements read at once

template <typename T>
void read_as(const void* data, int64_t begin, int64_t count, double* to) {
  const T* from = static_cast<const T*>(data) + begin;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_arithmetic_v<T>) {
      to[i] = static_cast<double>(from[i]);
    } else {
      to[i] = static_cast<double>(element_value(from[i]));
    }
  }
}

double distance(double squares, double norm) { return norm > 0 ? std::sqrt(squares / norm) : std::sqrt(squares); }

}  // namespace

Elements::Reader Elements::reader(DType dtype) {
  return with_dtype(dtype, [](auto kind) -> Reader { return read_as<decltype(kind)>; });
}

Elements::Elements(DType dtype, const void* data, int64_t count, double scale, double zero_point)
    : reader_(reader(dtype)), data_(data), count_(count), scale_(scale), zero_point_(zero_point) {}

Elements::Elements(const double* data, int64_t count) : reader_(read_as<double>), data_(data), count_(count) {}

void Elements::read(int64_t begin, int64_t count, double* to) const {
  reader_(data_, begin, count, to);
  if (scale_ == 1 && zero_point_ == 0) return;
  for (int64_t i = 0; i < count; ++i) to[i] = (to[i] - zero_point_) * scale_;
}

double OutputError::allowed(double max_error) const { return std::max(max_error, host_margin * host); }

double OutputError::against(double max_error) const {
  const double most = allowed(max_error);
  return most > max_error ? error * (max_error / most) : error;
}

double error_of_steps(double distance) {
  constexpr double near = 0.3;  // of seeded networks; what is wrong is far beyond it
  return distance <= near ? 0 : distance;
}

OutputError measure_error(const Elements& result, const Elements& host, const Elements* truth) {
  const Elements& right = truth != nullptr ? *truth : host;
  if (result.count() != right.count() || host.count() != right.count()) {
    throw Error("results of " + std::to_string(result.count()) + " and " + std::to_string(host.count()) +
                " elements are compared with " + std::to_string(right.count()));
  }
  double noise = 0, host_noise = 0, norm = 0;
  bool same_finite = true;
  double x[block], y[block], own[block];
  for (int64_t begin = 0; begin < right.count(); begin += block) {
    const int64_t count = std::min(block, right.count() - begin);
    result.read(begin, count, x);
    right.read(begin, count, y);
    if (truth != nullptr) host.read(begin, count, own);
    const double* h = truth != nullptr ? own : y;
    for (int64_t i = 0; i < count; ++i) {
      const bool finite = std::isfinite(x[i]), finite_host = std::isfinite(h[i]), right_finite = std::isfinite(y[i]);
      if (finite != right_finite && finite != finite_host) same_finite = false;
      if (!finite || !finite_host || !right_finite) continue;
      noise += (x[i] - y[i]) * (x[i] - y[i]);
      host_noise += (h[i] - y[i]) * (h[i] - y[i]);
      norm += y[i] * y[i];
    }
  }
  return {same_finite ? distance(noise, norm) : std::numeric_limits<double>::infinity(), distance(host_noise, norm)};
}

double judged_error(const Elements& result, const Elements& host, bool in_steps, double max_error,
                    const std::function<const Elements*()>& truth) {
  if (!in_steps) return measure_error(result, host, truth()).against(max_error);
  const double distance = measure_error(result, host).error;
  if (error_of_steps(distance) == 0) return 0;
  const Elements* right = truth();
  if (right == nullptr) return distance;
  constexpr double most = 1.5;
  const OutputError exact = measure_error(result, host, right);
  return exact.error <= most * exact.host ? 0 : distance;
}

}  // namespace softneuro
