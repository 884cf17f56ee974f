// Integers in the lanes of a vector, with the compiler's own operators.
#pragma once

#include "simd/simd.h"

namespace softneuro::SN_ISA {

typedef int32_t Vi __attribute__((vector_size(lanes * 4)));

SN_INLINE Vi load(const int32_t* p) {
  Vi x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
SN_INLINE void store(int32_t* p, Vi x) { __builtin_memcpy(p, &x, sizeof x); }
SN_INLINE void store(float* p, Vi x) { __builtin_memcpy(p, &x, sizeof x); }
SN_INLINE Vf to_float(Vf x) { return x; }
SN_INLINE Vf to_float(Vi x) { return {__builtin_convertvector(x, decltype(Vf::v))}; }
SN_INLINE Vi to_integers(Vf x) { return __builtin_convertvector(x.v, Vi); }

// The bits of each float, and back.
SN_INLINE Vi bits(Vf x) { return (Vi)x.v; }
SN_INLINE Vf from_bits(Vi x) { return {(decltype(Vf::v))x}; }

}  // namespace softneuro::SN_ISA
