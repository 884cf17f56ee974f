// The ends of kernels against doubles: every type of sums, residuals and results, in memory and in registers.
#include "kernels/store/store.h"

#include "tests/typed.h"

namespace softneuro {
namespace scalar {
void tile_pixels(const StoreRows&);
void tile_rows(const StoreRows&);
}  // namespace scalar
#if defined(__x86_64__)
namespace avx2 {
void tile_pixels(const StoreRows&);
void tile_rows(const StoreRows&);
}  // namespace avx2
namespace avx512 {
void tile_pixels(const StoreRows&);
void tile_rows(const StoreRows&);
}  // namespace avx512
#elif defined(__aarch64__)
namespace neon {
void tile_pixels(const StoreRows&);
void tile_rows(const StoreRows&);
}  // namespace neon
#endif

namespace test {
namespace {

using Kernel = void (*)(const StoreRows&);
enum class Way { memory, pixels, rows };

Kernel kernel_of(Isa isa, Way way) {
  if (way == Way::memory) return store_kernels(isa)->rows;
  const bool pixels = way == Way::pixels;
#if defined(__x86_64__)
  SN_IF_avx2(if (isa == Isa::avx2) return pixels ? avx2::tile_pixels : avx2::tile_rows);
  SN_IF_avx512(if (isa == Isa::avx512) return pixels ? avx512::tile_pixels : avx512::tile_rows);
#elif defined(__aarch64__)
  if (isa == Isa::neon) return pixels ? neon::tile_pixels : neon::tile_rows;
#endif
  return pixels ? scalar::tile_pixels : scalar::tile_rows;
}

Activation activation_for(Way way) {
  while (true) {
    const Activation act = random_activation();
    if (way == Way::memory || is_clamp(act.kind)) return act;
    if (way == Way::pixels && act.kind == ActivationKind::hardswish) return act;
  }
}

constexpr unsigned char untouched = 0x5a;

void check(Isa isa, Way way) {
  const int lanes = isa_block(vectors_of(isa));
  StoreRows r;
  r.rows = way == Way::memory ? pick(1, 40) : 3;
  r.columns = way == Way::memory ? pick(1, 3 * lanes) : way == Way::pixels ? lanes : pick(lanes + 1, 2 * lanes);
  r.per_row = way != Way::pixels && pick(0, 2) == 0;
  r.padded = way == Way::memory && pick(0, 1);
  r.integers = way != Way::memory || pick(0, 1);
  const int width = r.padded ? (r.columns + lanes - 1) / lanes * lanes : r.columns;
  r.sums_stride = r.columns + pick(0, 3), r.stride = width + pick(0, 3);
  const auto size = [&](ptrdiff_t stride, int columns) { return static_cast<size_t>((r.rows - 1) * stride + columns); };

  const std::vector<float> numbers = random_data(size(r.sums_stride, r.columns), 4);
  Guarded sums(numbers);
  std::vector<double> values(numbers.begin(), numbers.end());
  if (r.integers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto integer = static_cast<int32_t>(numbers[i] * 1000);
      std::memcpy(sums.data() + i, &integer, sizeof integer);
      values[i] = integer;
    }
  }
  r.sums = sums.data();
  const int terms = r.per_row ? r.rows : r.columns;
  Guarded scale(random_data(terms, r.integers ? 1e-3F : 2)), bias(random_data(terms));
  Epilogue& e = r.epilogue;
  if (way != Way::memory || pick(0, 1)) e.scale = scale.data();
  if (pick(0, 1)) e.bias = bias.data();
  e.activation = activation_for(way);
  e.dst = random_elements();
  ElementFormat added = random_elements();
  if (way != Way::memory && added.type != e.dst.type && e.dst.type != DType::float32) added = {};
  Typed residual(added, random_data(size(r.stride, r.columns)));
  if (pick(0, 2) != 0) e.residual = residual.residual();
  Typed dst(e.dst, size(r.stride, width), untouched);
  // In place, if sums are what dst has.
  const bool in_place = way == Way::memory && !r.integers && !r.padded && e.dst.type == DType::float32 && pick(0, 1);
  if (in_place) {
    r.sums_stride = r.stride;
    for (int i = 0; i < r.rows; ++i) {
      for (int j = 0; j < r.columns; ++j) {
        const size_t at = static_cast<size_t>(i * r.stride + j);
        static_cast<float*>(dst.data())[at] = numbers[at % numbers.size()];
      }
    }
    r.sums = dst.data();
  }
  r.dst = dst.data();
  kernel_of(isa, way)(r);

  const char* wrong = nullptr;
  for (int i = 0; i < r.rows; ++i) {
    for (int j = 0; j < r.stride; ++j) {
      const size_t at = static_cast<size_t>(i * r.stride + j);
      if (at >= dst.size()) continue;
      if (j >= width) {
        if (!in_place && !dst.is_filled(at, untouched)) wrong = "wrote past the columns";
      } else if (j >= r.columns) {
        if (dst.value(at) != 0) wrong = "padding is not zero";
      } else {
        const int term = r.per_row ? i : j;
        double x = in_place ? numbers[at % numbers.size()] : values[static_cast<size_t>(i * r.sums_stride + j)];
        if (e.scale != nullptr) x *= scale.data()[term];
        if (e.bias != nullptr) x += bias.data()[term];
        if (e.residual.data != nullptr) x += residual.value(at);
        const double want = apply(e.activation, x);
        if (!dst.is_near(at, want, 3e-6 * (1 + std::fabs(want)))) wrong = "wrong value";
      }
    }
  }
  if (wrong == nullptr || ++failures() > 20) return;
  std::printf("store %s way %d: %s; %dx%d integers %d per_row %d padded %d dst %d residual %d act %d\n",
              std::string(isa_name(isa)).c_str(), static_cast<int>(way), wrong, r.rows, r.columns, r.integers,
              r.per_row, r.padded, static_cast<int>(e.dst.type),
              e.residual.data == nullptr ? -1 : static_cast<int>(e.residual.elements.type),
              static_cast<int>(e.activation.kind));
}

// What is too large, and NaN.
void check_limits(Isa isa) {
  const float inf = INFINITY;
  Guarded sums({70000.0F, -70000.0F, inf, -inf, NAN, 65519.0F});
  const auto store = [&](const ElementFormat& e, std::vector<double> want) {
    Typed dst(e, 6);
    StoreRows r;
    r.sums = sums.data(), r.dst = dst.data(), r.rows = 1, r.columns = 6;
    r.epilogue.dst = e;
    store_kernels(isa)->rows(r);
    for (size_t i = 0; i < 6; ++i) {
      expect(std::isnan(want[i]) ? std::isnan(dst.value(i)) : dst.value(i) == want[i], "limits of a type");
    }
  };
  store({.type = DType::float16}, {inf, -inf, inf, -inf, NAN, 65504});
  store({.type = DType::bfloat16}, {70144, -70144, inf, -inf, NAN, 65536});
  store({.type = DType::uint8, .scale = 0.5F, .zero = 100}, {77.5, -50, 77.5, -50, 0, 77.5});
  store({.type = DType::int8, .scale = 0.5F, .zero = -3}, {65, -62.5, 65, -62.5, 0, 65});
  store({.type = DType::int8, .scale = 0.5F, .zero = -3, .least = -127, .most = 100}, {51.5, -62, 51.5, -62, 0, 51.5});
}

}  // namespace
}  // namespace test
}  // namespace softneuro

SN_TEST(store_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  std::vector<Isa> all = available_isas();
  for (const Isa isa : available_extensions()) all.push_back(isa);
  for (const Isa isa : all) {
    check_limits(isa);
    for (int i = 0; i < 4000; ++i) check(isa, Way::memory);
    if (vectors_of(isa) != isa) continue;
    for (int i = 0; i < 2000; ++i) check(isa, Way::pixels), check(isa, Way::rows);
  }
}
