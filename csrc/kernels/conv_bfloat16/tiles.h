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

// How a pixel's channels lie in rows of bfloat16: two blocks side by side, in a row of each part (`step` bfloat16 from
// part to part) channel i of the one and then of the other; a block alone with its first two parts side by side, and in
// a second row the third and the first, so that products with such a row are two of those wanted.

template <int parts>
SN_INLINE void split_any(const float* first, const float* second, uint16_t* to, size_t step = 2 * lanes) {
  for (int i = 0; i < lanes; ++i) {
    float x = first[i], y = second[i];
    for (int part = 0; part < parts; ++part) {
      to[part * step + i * 2] = take_bfloat16(x);
      to[part * step + i * 2 + 1] = take_bfloat16(y);
    }
  }
}
template <int parts>
SN_INLINE void split_any(const float* from, uint16_t* to) {
  for (int i = 0; i < lanes; ++i) {
    float x = from[i];
    const uint16_t part = take_bfloat16(x);
    to[2 * i] = part, to[2 * i + 1] = take_bfloat16(x);
    if (parts == 3) to[2 * (lanes + i)] = take_bfloat16(x), to[2 * (lanes + i) + 1] = part;
  }
}

#if SN_LEVEL == SN_LEVEL_amx

// Parts of some pixels' values as take_bfloat16 makes them, if none rounds to infinity or is none.
class Splitter {
 public:
  template <int parts>
  SN_INLINE void split(const float* first, const float* second, uint16_t* to, size_t step = 2 * lanes) {
    __m512 x = take(first, check_), y = take(second, check_of_second_);
    for (int i = 0; i < parts; ++i) {
      const __m512i rounded_x = rounded(x), rounded_y = rounded(y);
      store_row(rounded_x, rounded_y, to + i * step);
      if (i + 1 < parts) x = rest(x, rounded_x), y = rest(y, rounded_y);
    }
  }
  template <int parts>
  SN_INLINE void split(const float* from, uint16_t* to) {
    const __m512 x = take(from, check_);
    const __m512i first = rounded(x);
    const __m512 left = rest(x, first);
    const __m512i second = rounded(left);
    store_row(first, second, to);
    if (parts == 3) store_row(rounded(rest(left, second)), first, to + 2 * lanes);
  }
  SN_INLINE bool right() const {
    constexpr int nan_or_infinity = 0x99;
    return (_mm512_fpclass_ps_mask(check_, nan_or_infinity) |
            _mm512_fpclass_ps_mask(check_of_second_, nan_or_infinity)) == 0;
  }

 private:
  // What would round to infinity becomes it when multiplied by slightly more than a half bfloat16's last digit.
  static SN_INLINE __m512 take(const float* from, __m512& check) {
    const __m512 x = _mm512_loadu_ps(from);
    check = _mm512_fmadd_ps(x, _mm512_set1_ps(1 + 0x1p-8f), check);
    return x;
  }
  static SN_INLINE __m512i rounded(__m512 x) {
    return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  }
  static SN_INLINE __m512 rest(__m512 x, __m512i rounded) {
    return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32(~0xffff))));
  }
  static SN_INLINE void store_row(__m512i low, __m512i high, uint16_t* to) {
    _mm512_storeu_si512(to, _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_maskz_srli_epi32(0xffff, low, 16), high));
  }

  __m512 check_ = _mm512_setzero_ps(), check_of_second_ = _mm512_setzero_ps();
};

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

class Splitter {
 public:
  template <int parts, class... Args>
  SN_INLINE void split(Args... args) {
    split_any<parts>(args...);
  }
  SN_INLINE bool right() const { return true; }
};

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
