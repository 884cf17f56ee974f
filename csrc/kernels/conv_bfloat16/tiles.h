// Eight tiles of registers that are multiplied with each other: AMX's, or the same in plain code.
//
// A tile has rows of `row_bytes` bytes: `lanes` floats (sums) or twice as many bfloat16 (factors). Sums and first
// factors have `tile_rows` rows, second factors `lanes`, where row r holds pairs of the rows 2r and 2r + 1 of a matrix:
//   sum[m][n] += first[m][2r] * second[r][2n] + first[m][2r + 1] * second[r][2n + 1]   over all r
// bfloat16 that are denormal count as zero in AMX, and results that are become zero.
#pragma once

#include "kernels/conv_bfloat16/bfloat16.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace conv_bfloat16 {

constexpr int tile_rows = 16;
constexpr int row_bytes = lanes * 4;

// The parts of `lanes` floats, each part `step` elements after the one before.
template <int parts>
SN_INLINE void split_any(const float* from, uint16_t* to, size_t step) {
  for (int i = 0; i < lanes; ++i) {
    float x = from[i];
    for (int part = 0; part < parts; ++part) to[part * step + i] = take_bfloat16(x);
  }
}

#if SN_LEVEL == SN_LEVEL_amx

template <int parts>
SN_INLINE void split(const float* from, uint16_t* to, size_t step) {
  __m512 x = _mm512_loadu_ps(from);
  constexpr float first_to_overflow = 0x1.ffp127f;
  if (_mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(first_to_overflow), _CMP_NLT_UQ) != 0) {
    split_any<parts>(from, to, step);
    return;
  }
  for (int i = 0; i < parts; ++i) {
    const auto part = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * step), part);
    x = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(part), 16)));
  }
}

// Tiles are a thread's while one of these lives.
class Tiles {
 public:
  SN_INLINE Tiles() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t bytes[16] = {};
      uint8_t rows[16] = {};
    } shape;
    for (int i = 0; i < 8; ++i) shape.bytes[i] = row_bytes, shape.rows[i] = tile_rows;
    __asm__ volatile("ldtilecfg %0" : : "m"(shape));
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  SN_INLINE ~Tiles() { __asm__ volatile("tilerelease"); }

  // stride: bytes from row to row, 0 for the same row all over.
  template <int tile, int rows = tile_rows>
  SN_INLINE void load(const void* from, size_t stride) {
    static_assert(rows == tile_rows);
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  SN_INLINE void store(float* to) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(size_t{row_bytes}), "i"(tile) : "memory");
  }
  template <int sum, int first, int second>
  SN_INLINE void multiply() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(first), "i"(second));
  }
};

#else

template <int parts>
SN_INLINE void split(const float* from, uint16_t* to, size_t step) {
  split_any<parts>(from, to, step);
}

class Tiles {
 public:
  template <int tile, int rows = tile_rows>
  SN_INLINE void load(const void* from, size_t stride) {
    for (int r = 0; r < rows; ++r) {
      __builtin_memcpy(memory_[tile] + r * row_bytes, static_cast<const char*>(from) + r * stride, row_bytes);
    }
  }
  template <int tile>
  SN_INLINE void store(float* to) const {
    __builtin_memcpy(to, memory_[tile], tile_rows * row_bytes);
  }
  template <int sum, int first, int second>
  SN_INLINE void multiply() {
    for (int m = 0; m < tile_rows; ++m) {
      for (int n = 0; n < lanes; ++n) {
        float x;
        char* const at = memory_[sum] + (m * lanes + n) * 4;
        __builtin_memcpy(&x, at, 4);
        for (int r = 0; r < lanes; ++r) {
          for (int i = 0; i < 2; ++i) x += factor(first, m, 2 * r + i) * factor(second, r, 2 * n + i);
        }
        __builtin_memcpy(at, &x, 4);
      }
    }
  }

 private:
  SN_INLINE float factor(int tile, int row, int index) const {
    uint16_t half;
    __builtin_memcpy(&half, memory_[tile] + row * row_bytes + index * 2, 2);
    return float_of(uint32_t{half} << 16);
  }

  char memory_[8][tile_rows * row_bytes];
};

#endif

}  // namespace conv_bfloat16
}  // namespace softneuro::SN_ISA
