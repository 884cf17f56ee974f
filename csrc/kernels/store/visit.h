// Types of elements that are known at run time. What is hot for several types is a template, of which with_elements
// calls an instance; all else are loops over floats, which reach other types through a buffer of values.
#pragma once

#include "kernels/store/policy.h"

namespace softneuro::SN_ISA {

// Calls body.template operator()<T>() for the element's type.
template <class Body>
SN_INLINE void with_elements(DType type, const Body& body) {
  if (type == DType::float32) return body.template operator()<float>();
  if (type == DType::float16) return body.template operator()<Float16>();
  if (type == DType::bfloat16) return body.template operator()<BFloat16>();
  if (type == DType::uint8) return body.template operator()<uint8_t>();
  assert(type == DType::int8);
  body.template operator()<int8_t>();
}

// n elements from number `first` of src or dst on. Compiled once per level, for every type.
void read_values(const ElementFormat& elements, const void* src, int64_t first, int64_t n, float* values);
void write_values(const ElementFormat& elements, const float* values, void* dst, int64_t first, int64_t n);

// Values in a buffer between two steps.
constexpr int buffered = 16 * lanes;

}  // namespace softneuro::SN_ISA
