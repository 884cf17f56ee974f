// Element types: names, sizes, parsing and dispatch follow from the table dtypes.inc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/elements.h"

namespace softneuro {

enum class DType : uint8_t {
#define SN_DTYPE(name, type, bits, kind) name,
#include "base/dtypes.inc"
#undef SN_DTYPE
};

enum class DTypeKind : uint8_t { real, integer, boolean, quantized };

// "bool" for DType::boolean, else the name in the table.
std::string_view dtype_name(DType dtype);
// Throws Error naming the known ones.
DType parse_dtype(std::string_view name);

constexpr auto all_dtypes() {
  return std::array{
#define SN_DTYPE(name, type, bits, kind) DType::name,
#include "base/dtypes.inc"
#undef SN_DTYPE
  };
}

constexpr int dtype_bits(DType dtype) {
  constexpr int table[] = {
#define SN_DTYPE(name, type, bits, kind) bits,
#include "base/dtypes.inc"
#undef SN_DTYPE
  };
  return table[static_cast<size_t>(dtype)];
}
constexpr DTypeKind dtype_kind(DType dtype) {
  constexpr DTypeKind table[] = {
#define SN_DTYPE(name, type, bits, kind) DTypeKind::kind,
#include "base/dtypes.inc"
#undef SN_DTYPE
  };
  return table[static_cast<size_t>(dtype)];
}
// Size of so many elements side by side; a last byte that is not full counts.
constexpr size_t dtype_bytes(DType dtype, int64_t elements) {
  return (static_cast<size_t>(elements) * static_cast<size_t>(dtype_bits(dtype)) + 7) / 8;
}

template <typename T>
struct DTypeOf;
#define SN_DTYPE(name, type, bits, kind)        \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
#include "base/dtypes.inc"
#undef SN_DTYPE
template <typename T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

// Calls body(T{}) with a value of the C++ type.
template <typename Body>
decltype(auto) with_dtype(DType dtype, const Body& body) {
  switch (dtype) {
#define SN_DTYPE(name, type, bits, kind) \
  case DType::name:                      \
    return body(type{});
#include "base/dtypes.inc"
#undef SN_DTYPE
  }
  __builtin_unreachable();
}

}  // namespace softneuro
