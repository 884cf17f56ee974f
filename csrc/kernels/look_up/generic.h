// look_up at one level. Contract: look_up.h.
#pragma once

#include "base/cpu_traits.h"
#include "kernels/look_up/look_up.h"
#include "simd/lut.h"

namespace softneuro::SN_ISA {
namespace look_up {

SN_INLINE void one_by_one(const uint8_t* table, const uint8_t* src, uint8_t* dst, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t all, found = 0;
    __builtin_memcpy(&all, src + i, 8);
    for (int k = 0; k < 64; k += 8) found |= uint64_t{table[all >> k & 255]} << k;
    __builtin_memcpy(dst + i, &found, 8);
  }
  for (; i < count; ++i) dst[i] = table[src[i]];
}

#if SN_VECTORS == SN_LEVEL_avx512
[[gnu::target("avx512vbmi")]] inline void by_halves(const uint8_t* table, const uint8_t* src, uint8_t* dst,
                                                    int64_t count) {
  HalfTables halves;
  for (int i = 0; i < 4; ++i) halves.of[i] = load_row(table + i * vector_bytes);
  int64_t i = 0;
  for (; i + vector_bytes <= count; i += vector_bytes) {
    store_row(dst + i, look_up_halves(halves, load_row(src + i)));
  }
  const int rest = static_cast<int>(count - i);
  if (rest > 0) store_row_n(dst + i, look_up_halves(halves, load_row_n(src + i, rest)), rest);
}
#endif

// A sixteenth of the table at a time, for bytes whose upper half is its number.
inline void run(const Lut& table, const uint8_t* src, uint8_t* dst, int64_t count) {
  const uint8_t* const values = table.data();
#if SN_VECTORS == SN_LEVEL_avx512
  if (permutes_bytes()) return by_halves(values, src, dst, count);
#endif
  int64_t i = 0;
  for (; looks_up_bytes && i + vector_bytes <= count; i += vector_bytes) {
    const Vb x = load_row(src + i);
    Vb found{};
    for (int part = 0; part < 256; part += 16) {
      found = of_sixteenth(found, sixteenth(values + part), x ^ (Vb{} + static_cast<uint8_t>(part)));
    }
    store_row(dst + i, found);
  }
  one_by_one(values, src + i, dst + i, count - i);
}

}  // namespace look_up
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(LookUpKernel, look_up) = SN_ISA::look_up::run;

}  // namespace softneuro
