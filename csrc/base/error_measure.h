// How far results are from what is right: the one measure that max_error is held against, by judges, by the search for
// plans that are exact enough, by tests and by benchmarks.
#pragma once

#include <cstdint>
#include <functional>

#include "base/schema.h"

namespace softneuro {

// Elements side by side in memory, read as the numbers that they mean.
class Elements {
 public:
  // Quantized ones mean (element - zero_point) * scale.
  Elements(DType dtype, const void* data, int64_t count, double scale = 1, double zero_point = 0);
  Elements(const float* data, int64_t count) : Elements(DType::float32, data, count) {}
  Elements(const double* data, int64_t count);

  int64_t count() const { return count_; }
  void read(int64_t begin, int64_t count, double* to) const;

 private:
  using Reader = void (*)(const void* data, int64_t begin, int64_t count, double* to);
  static Reader reader(DType dtype);

  Reader reader_;
  const void* data_;
  int64_t count_;
  double scale_ = 1, zero_point_ = 0;
};

// One output's distances from the truth. Relative L2 over what is finite everywhere, absolute where the truth is zero.
struct OutputError {
  double error = 0;  // the result's; infinite if it is finite where neither the truth nor the host is, or the reverse
  double host = 0;   // the host's own: zero where the host is exact, and so the truth itself

  // A result need not be much nearer to the truth than the host is.
  double allowed(double max_error) const;
  // The error, but on a scale on which max_error is what is allowed: one number for judges to compare and to remember.
  double against(double max_error) const;
  bool within(double max_error) const { return error <= allowed(max_error); }
};

// Without a truth the host is it. Throws Error if the numbers of elements differ.
OutputError measure_error(const Elements& result, const Elements& host, const Elements* truth = nullptr);
// The error of quantized results, whose last digit may be a whole step, and a step in an early layer moves others:
// nothing for a distance that two right executions may have.
double error_of_steps(double distance);
// THE rule for an output of a region, on a scale on which max_error is allowed. `in_steps`: the model, or the host in
// its place, rounds to steps on the way to it. Then it may differ as two right executions do, and be as far from what
// the ops are one by one as the host is, but not much farther. `truth` is asked for only where it counts, and may give
// null.
double judged_error(const Elements& result, const Elements& host, bool in_steps, double max_error,
                    const std::function<const Elements*()>& truth);
inline double relative_error(const Elements& result, const Elements& truth) {
  return measure_error(result, truth).error;
}

}  // namespace softneuro
