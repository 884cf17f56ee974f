// Conversions of every level against base/elements.h: all halves, floats on all sides of every rounding, all bytes, and
// runs of every length that touch nothing behind their ends.
#include "kernels/convert/convert.h"

#include <cstring>

#include "base/elements.h"
#include "tests/check.h"

namespace softneuro::test {
namespace {

void expect(bool right, const char* what, DType dtype, Isa isa, double detail = 0) {
  if (right || ++failures() > 20) return;
  std::printf("convert %s: %s of %s is wrong at %g\n", std::string(isa_name(isa)).c_str(), what,
              std::string(dtype_name(dtype)).c_str(), detail);
}

bool same_bits(const void* a, const void* b, size_t bytes) { return std::memcmp(a, b, bytes) == 0; }

// Compares elements with what `exact` says, bit by bit; NaN with its payload, too.
template <typename T>
void check_from(Isa isa, const std::vector<T>& elements) {
  std::vector<float> values(elements.size());
  convert_kernel(isa, dtype_of<T>, DType::float32)(elements.data(), values.data(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    const float want = element_value(elements[i]);
    expect(same_bits(&values[i], &want, sizeof(float)), "a value", dtype_of<T>, isa, static_cast<double>(i));
  }
}

template <typename T>
void check_to(Isa isa, const std::vector<float>& values) {
  std::vector<T> elements(values.size());
  convert_kernel(isa, DType::float32, dtype_of<T>)(values.data(), elements.data(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    expect(elements[i] == element_from<T>(values[i]), "an element", dtype_of<T>, isa, values[i]);
  }
}

// All that the upper half of a float's bits can be, and below it what decides where it is rounded to; every float
// between two neighbouring denormals of float16, too.
std::vector<float> telling_floats() {
  std::vector<float> values;
  for (uint32_t upper = 0; upper < 1U << 19; ++upper) {
    for (const uint32_t low : {0x0U, 0x1U, 0xfffU, 0x1000U, 0x1001U, 0x1fffU}) {
      values.push_back(std::bit_cast<float>(upper << 13 | low));
    }
  }
  for (uint32_t bits = 0x33000000U; bits < 0x33c00000U; bits += 0x3fff) values.push_back(std::bit_cast<float>(bits));
  return values;
}

template <typename T>
std::vector<T> all_halves() {
  std::vector<T> elements;
  for (uint32_t bits = 0; bits < 1U << 16; ++bits) elements.push_back({static_cast<uint16_t>(bits)});
  return elements;
}

template <typename T>
void check_integers(Isa isa, const std::vector<T>& elements) {
  check_from(isa, elements);
  std::vector<float> values;
  for (const T element : elements) values.push_back(element_value(element));
  check_to<T>(isa, values);
}

template <typename T>
std::vector<T> integers(int64_t least, int64_t most, int64_t step) {
  std::vector<T> elements;
  for (int64_t x = least; x <= most; x += step) elements.push_back(static_cast<T>(x));
  return elements;
}

// n elements that end where memory does.
template <typename T>
T* at_end(Guarded& memory, size_t n) {
  return reinterpret_cast<T*>(memory.data() + memory.size()) - n;
}

template <typename T>
void check_lengths(Isa isa) {
  for (size_t n = 0; n < 70; ++n) {
    const auto count = static_cast<int64_t>(n);
    Guarded elements((n * sizeof(T) + 3) / 4), values(n), elements_back((n * sizeof(T) + 3) / 4);
    for (size_t i = 0; i < n; ++i) at_end<T>(elements, n)[i] = element_from<T>(static_cast<float>(i % 2));
    convert_kernel(isa, dtype_of<T>, DType::float32)(at_end<T>(elements, n), values.data(), count);
    for (size_t i = 0; i < n; ++i) expect(values.data()[i] == i % 2, "a length", dtype_of<T>, isa, count);
    convert_kernel(isa, DType::float32, dtype_of<T>)(values.data(), at_end<T>(elements_back, n), count);
    const bool same = same_bits(at_end<T>(elements, n), at_end<T>(elements_back, n), n * sizeof(T));
    expect(same, "a length back", dtype_of<T>, isa, count);
  }
}

void check(Isa isa) {
  const std::vector<float> floats = telling_floats();
  check_from(isa, all_halves<Float16>());
  check_from(isa, all_halves<BFloat16>());
  check_to<Float16>(isa, floats);
  check_to<BFloat16>(isa, floats);
  constexpr int64_t exact = 1 << 24;  // integers that floats hold each
  check_integers(isa, integers<uint8_t>(0, 255, 1));
  check_integers(isa, integers<int8_t>(-128, 127, 1));
  check_integers(isa, integers<int32_t>(-exact, exact, 8191));
  check_integers(isa, integers<int64_t>(-exact, exact, 8191));
  check_integers(isa, std::vector<Bool>{{0}, {1}, {1}, {0}, {1}});
#define SN_LENGTHS(name, type) check_lengths<type>(isa);
  SN_CONVERTED(SN_LENGTHS)
#undef SN_LENGTHS
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(convert_test) {
  using namespace softneuro;
  for (const Isa isa : available_isas()) test::check(isa);
}
