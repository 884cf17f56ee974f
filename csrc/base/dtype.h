// Element types: THE table. Names, sizes, parsing and dispatch follow from it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace softneuro {

// Two-byte reals are kept as their bits: arithmetic on them goes through float32 (base/half.h).
struct Float16 {
  uint16_t bits;
  friend bool operator==(Float16, Float16) = default;
};
struct BFloat16 {
  uint16_t bits;
  friend bool operator==(BFloat16, BFloat16) = default;
};
// Eight bits of a quantized value, signed or not as the blob's parameters say.
struct QInt8 {
  uint8_t bits;
  friend bool operator==(QInt8, QInt8) = default;
};
struct Bool {
  uint8_t value;  // 0 or 1
  friend bool operator==(Bool, Bool) = default;
};

// SN_DTYPE(name, C++ type, bits). A type of four bits is a line with the C++ type of its pair and 4 bits.
#define SN_DTYPES(X)        \
  X(float32, float, 32)     \
  X(float16, Float16, 16)   \
  X(bfloat16, BFloat16, 16) \
  X(uint8, uint8_t, 8)      \
  X(int8, int8_t, 8)        \
  X(int32, int32_t, 32)     \
  X(int64, int64_t, 64)     \
  X(boolean, Bool, 8)       \
  X(qint8, QInt8, 8)

enum class DType : uint8_t {
#define SN_ENUM(name, type, bits) name,
  SN_DTYPES(SN_ENUM)
#undef SN_ENUM
};

// "bool" for DType::boolean, else the name in the table.
std::string_view dtype_name(DType dtype);
// Throws Error naming the known ones.
DType parse_dtype(std::string_view name);

constexpr int dtype_bits(DType dtype) {
  constexpr int bits[] = {
#define SN_BITS(name, type, bits) bits,
      SN_DTYPES(SN_BITS)
#undef SN_BITS
  };
  return bits[static_cast<size_t>(dtype)];
}
// Of so many elements side by side; a last byte that is not full counts.
constexpr size_t dtype_bytes(DType dtype, int64_t elements) {
  return (static_cast<size_t>(elements) * static_cast<size_t>(dtype_bits(dtype)) + 7) / 8;
}

template <typename T>
struct DTypeOf;
#define SN_TRAIT(name, type, bits)              \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
SN_DTYPES(SN_TRAIT)
#undef SN_TRAIT
template <typename T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

constexpr auto all_dtypes() {
  return std::array{
#define SN_ENTRY(name, type, bits) DType::name,
      SN_DTYPES(SN_ENTRY)
#undef SN_ENTRY
  };
}

// Calls body(T{}) with a value of the C++ type.
template <typename Body>
decltype(auto) with_dtype(DType dtype, const Body& body) {
  switch (dtype) {
#define SN_CASE(name, type, bits) \
  case DType::name:               \
    return body(type{});
    SN_DTYPES(SN_CASE)
#undef SN_CASE
  }
  __builtin_unreachable();
}

}  // namespace softneuro
