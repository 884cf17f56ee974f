// Included by one file per level: checks simd.h and math.h against <cmath> in double.
#pragma once

#include <cmath>
#include <cstdio>
#include <utility>

#include "simd/math.h"

namespace softneuro::SN_ISA {
namespace {

int failures = 0;
void expect(bool ok, const char* what, double at = 0) {
  if (!ok && ++failures < 20) std::printf("%s: %s at %.9g\n", SN_TEST_LEVEL, what, at);
}

// Worst error in units of the last place of the exact value, or absolute in units of 2^-24 where that is larger.
template <class F, class G>
void function(const char* name, F f, G exact, double lo, double hi, double limit, bool absolute = false) {
  const int steps = 200000;
  double worst = 0, where = 0;
  for (int i = 0; i < steps; i += lanes) {
    float x[lanes], y[lanes];
    for (int j = 0; j < lanes; ++j) x[j] = static_cast<float>(lo + (hi - lo) * (i + j) / steps);
    store(y, f(load(x)));
    for (int j = 0; j < lanes; ++j) {
      const double want = exact(static_cast<double>(x[j]));
      double unit = std::fmax(std::fabs(want), 0x1p-126) * 0x1p-24;
      if (absolute) unit = std::fmax(unit, 0x1p-24);
      const double error = std::fabs(y[j] - want) / unit;
      if (!(error <= worst)) worst = error, where = x[j];
    }
  }
  std::printf("%-8s %-8s worst %.2f half-ulp at %g\n", SN_TEST_LEVEL, name, worst, where);
  expect(worst <= limit, name, where);
}
template <class F>
void value(const char* name, F f, float x, float want) {
  float y[lanes];
  store(y, f(set(x)));
  for (int j = 0; j < lanes; ++j) expect(std::isnan(want) ? std::isnan(y[j]) : y[j] == want, name, x);
}

void movement() {
  float a[lanes * lanes], b[3 * lanes];
  Vf r[lanes];
  for (int i = 0; i < lanes * lanes; ++i) a[i] = static_cast<float>(i);
  for (int i = 0; i < lanes; ++i) r[i] = load(a + i * lanes);
  transpose(r);
  for (int i = 0; i < lanes; ++i) {
    store(b, r[i]);
    for (int j = 0; j < lanes; ++j) expect(b[j] == a[j * lanes + i], "transpose", i);
  }
  for (int n = 0; n <= lanes; ++n) {
    for (float& x : b) x = -1;
    store_n(b + lanes, load(a), n);
    for (int j = 0; j < 3 * lanes; ++j) {
      expect(b[j] == (j >= lanes && j < lanes + n ? a[j - lanes] : -1), "store_n", n);
    }
    store(b, load_n(a + 1, n));
    for (int j = 0; j < lanes; ++j) expect(b[j] == (j < n ? a[j + 1] : 0), "load_n", n);
  }
  expect(reduce_add(load(a)) == lanes * (lanes - 1) / 2, "reduce_add");
  expect(reduce_max(load(a)) == lanes - 1, "reduce_max");
  expect(reduce_min(load(a)) == 0, "reduce_min");
}

}  // namespace

int check() {
  const float inf = INFINITY, nan = NAN;
  movement();
  const auto e = [](Vf x) { return exp(x); };
  const auto m1 = [](Vf x) { return expm1(x); };
  const auto l = [](Vf x) { return log(x); };
  const auto l1 = [](Vf x) { return log1p(x); };
  const auto t = [](Vf x) { return tanh(x); };
  const auto s = [](Vf x) { return sigmoid(x); };
  const auto r = [](Vf x) { return erf(x); };
  function("exp", e, [](double x) { return std::exp(x); }, -87, 88.7, 4);
  function("expm1", m1, [](double x) { return std::expm1(x); }, -20, 88.7, 6);
  function("expm1", m1, [](double x) { return std::expm1(x); }, -1, 1, 6);
  function("log", l, [](double x) { return std::log(x); }, 1e-6, 4, 6);
  function("log", l, [](double x) { return std::log(x); }, 1e-40, 1e-36, 6);
  function("log", l, [](double x) { return std::log(x); }, 1, 1e38, 6);
  function("log1p", l1, [](double x) { return std::log1p(x); }, -0.99, 2, 10);
  function("log1p", l1, [](double x) { return std::log1p(x); }, 0, 1e-6, 10);
  function("tanh", t, [](double x) { return std::tanh(x); }, -12, 12, 8);
  function("sigmoid", s, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, 8);
  function("erf", r, [](double x) { return std::erf(x); }, -6, 6, 4, true);
  for (const auto& [x, want] :
       {std::pair{inf, inf}, {-inf, 0.0f}, {89.0f, inf}, {-200.0f, 0.0f}, {0.0f, 1.0f}, {nan, nan}})
    value("exp", e, x, want);
  for (const auto& [x, want] : {std::pair{inf, inf}, {-inf, -1.0f}, {89.0f, inf}, {0.0f, 0.0f}, {nan, nan}})
    value("expm1", m1, x, want);
  for (const auto& [x, want] : {std::pair{inf, inf}, {0.0f, -inf}, {-1.0f, nan}, {-inf, nan}, {1.0f, 0.0f}, {nan, nan}})
    value("log", l, x, want);
  for (const auto& [x, want] : {std::pair{inf, inf}, {-1.0f, -inf}, {-2.0f, nan}, {0.0f, 0.0f}, {nan, nan}})
    value("log1p", l1, x, want);
  for (const auto& [x, want] : {std::pair{inf, 1.0f}, {-inf, -1.0f}, {0.0f, 0.0f}, {nan, nan}}) {
    value("tanh", t, x, want);
    value("erf", r, x, want);
  }
  for (const auto& [x, want] : {std::pair{inf, 1.0f}, {-inf, 0.0f}, {nan, nan}, {0.0f, 0.5f}})
    value("sigmoid", s, x, want);

  const auto maximum = [=](float a, float b) { return [=](Vf) { return max(set(a), set(b)); }; };
  const auto minimum = [=](float a, float b) { return [=](Vf) { return min(set(a), set(b)); }; };
  value("max", maximum(nan, 1), 0, nan);
  value("max", maximum(1, nan), 0, nan);
  value("max", maximum(1, 2), 0, 2);
  value("min", minimum(nan, 1), 0, nan);
  value("min", minimum(1, nan), 0, nan);
  value("min", minimum(1, 2), 0, 1);
  value("at_least", [](Vf x) { return at_least(x, zero()); }, nan, nan);
  value("at_most", [](Vf x) { return at_most(x, zero()); }, nan, nan);
  for (const float x : {0.5f, 1.5f, -0.5f, -1.5f, 2.49f, -7.6f, 1e9f, -3e9f, inf, nan}) {
    value("round", [](Vf v) { return round(v); }, x, std::nearbyint(x));
    value("floor", [](Vf v) { return floor(v); }, x, std::floor(x));
    value("abs", [](Vf v) { return abs(v); }, x, std::fabs(x));
    value("sqrt", [](Vf v) { return sqrt(abs(v)); }, x, std::sqrt(std::fabs(x)));
  }
  return failures;
}

}  // namespace softneuro::SN_ISA
