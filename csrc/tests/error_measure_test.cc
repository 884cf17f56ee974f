// The measure of errors: exact hosts, inexact ones, what is not finite, and elements that have to be interpreted.
#include "base/error_measure.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tests/expect.h"

namespace {

using namespace softneuro;

using test::expect;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Elements of(const std::vector<float>& values) { return {values.data(), static_cast<int64_t>(values.size())}; }

bool near(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

double error_of(const std::vector<float>& result, const std::vector<float>& truth) {
  return relative_error(of(result), of(truth));
}

void exact_hosts() {
  expect(near(error_of({3, 4.5}, {3, 4}), 0.1), "relative");
  expect(error_of({3, 4}, {0, 0}) == 5, "absolute where the truth is zero");
  expect(error_of({}, {}) == 0, "nothing has no error");
  const std::vector<double> wide{3, 4};
  expect(near(relative_error(of({3, 4.5}), {wide.data(), 2}), 0.1), "against float64");
  // More than is read at once, the error at the very end.
  std::vector<float> truth(5000, 1), result = truth;
  result.back() = 2;
  expect(near(error_of(result, truth), 1 / std::sqrt(5000.)), "long ones");
  const OutputError exact = measure_error(of({3, 4.5}), of({3, 4}));
  expect(exact.host == 0 && exact.allowed(0.1) == 0.1, "an exact host allows max_error");
  expect(exact.against(0.3) == exact.error && exact.within(0.11) && !exact.within(0.09),
         "and its error is what counts");
  bool refused = false;
  try {
    (void)error_of({1}, {1, 2});
  } catch (const Error&) {
    refused = true;
  }
  expect(refused, "other numbers of elements are refused");
}

void what_is_not_finite() {
  expect(std::isinf(error_of({1, nan}, {1, 2})), "what should be finite and is not");
  expect(std::isinf(error_of({1, 2}, {1, inf})), "and the reverse");
  expect(near(error_of({3, 4.5, inf, nan}, {3, 4, nan, nan}), 0.1), "what neither has finite is left out");
  // A host in a narrow type overflows where the truth does not: the result may do as either.
  const std::vector<float> truth{3, 4, 70000}, host{3, 4.25, inf};
  const Elements right = of(truth);
  for (const float last : {70000.f, inf}) {
    const std::vector<float> result{3, 4.5, last};
    const OutputError both = measure_error(of(result), of(host), &right);
    expect(near(both.error, 0.1) && near(both.host, 0.05), "where one of both is finite");
  }
  const std::vector<float> lost{3, inf, 70000};
  expect(std::isinf(measure_error(of(lost), of(host), &right).error), "where both are finite and the result is not");
}

void inexact_hosts() {
  const std::vector<float> truth{3, 4}, host{3, 4.5}, near_host{3, 3.5}, far{3, 5};
  const Elements right = of(truth);
  const OutputError good = measure_error(of(near_host), of(host), &right);
  expect(near(good.error, 0.1) && near(good.host, 0.1), "distances from the truth, not from the host");
  expect(near(good.allowed(1e-4), 0.11) && good.within(1e-4), "as inexact as the host is no fault");
  expect(near(good.against(1e-4), 1e-4 / 1.1), "on the scale of max_error");
  const OutputError bad = measure_error(of(far), of(host), &right);
  expect(near(bad.error, 0.2) && !bad.within(1e-4) && bad.against(1e-4) > 1e-4, "twice as inexact is one");
  expect(bad.within(0.2 + 1e-9) && near(bad.against(0.25), bad.error), "unless max_error allows it");
}

void quantized() {
  // Any type's elements may be integers in disguise.
  const std::vector<float> stored{13, 14};
  const std::vector<double> truth{1.5, 2};
  const Elements meant(DType::float32, stored.data(), 2, 0.5, 10);
  expect(relative_error(meant, {truth.data(), 2}) == 0, "scale and zero point");
}

}  // namespace

SN_TEST(error_measure_test) {
  exact_hosts();
  what_is_not_finite();
  inexact_hosts();
  quantized();
}
