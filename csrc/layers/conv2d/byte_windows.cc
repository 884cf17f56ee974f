#include "layers/conv2d/byte_windows.h"

#include <algorithm>
#include <cstring>

#include "base/lines.h"

namespace softneuro {
namespace {

constexpr int64_t move = 32;  // bytes

// A few bytes by moves of fixed size: what they write too much, the next ones overwrite, or there is room behind.
void copy_bytes(uint8_t* to, const uint8_t* from, int64_t bytes, const uint8_t* from_end) {
  if (bytes > 2 * move || from + 2 * move > from_end) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  std::memcpy(to, from, move);
  if (bytes > move) std::memcpy(to + move, from + move, move);
}

}  // namespace

std::vector<int8_t> filter_rows(const Problem& problem, const Conv2dParams& p) {
  const Int8Shape shape = int8_shape(p);
  const auto weights = int8_weights(problem);
  const int8_t* from = weights.get();
  std::vector<int8_t> rows(static_cast<size_t>(shape.outputs() * shape.k));
  const int64_t taps = p.kh * p.kw, c = p.group_c();
  for (int64_t output = 0; output < shape.outputs(); ++output) {
    int8_t* row = rows.data() + output * shape.k;
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t channel = 0; channel < c; ++channel) *row++ = from[(output * c + channel) * taps + tap];
    }
  }
  return rows;
}

size_t ByteWindows::bytes(int64_t rows) const { return round_to_line(static_cast<size_t>(rows * row_ + 2 * move)); }

void ByteWindows::copy(const uint8_t* src, const uint8_t* src_end, uint8_t zero, Range pixels, uint8_t* to) const {
  const int64_t c = p_.group_c(), rest = row_ - p_.kh * p_.kw * c;
  const bool together = p_.dw == 1 && p_.groups == 1;
  const auto fill = [zero](uint8_t* at, int64_t bytes) {
    if (bytes > 0) std::memset(at, zero, static_cast<size_t>(bytes));
    return at + bytes;
  };
  int64_t oy = pixels.begin / p_.ow, ox = pixels.begin % p_.ow;
  for (int64_t pixel = pixels.begin; pixel < pixels.end; ++pixel) {
    const int64_t left = ox * p_.sw - p_.pl;
    const bool inside = together && left >= 0 && left + p_.kw <= p_.w;
    for (int64_t ky = 0; ky < p_.kh; ++ky) {
      const int64_t y = oy * p_.sh - p_.pt + ky * p_.dh;
      if (y < 0 || y >= p_.h) {
        to = fill(to, p_.kw * c);
      } else if (inside) {
        copy_bytes(to, src + (y * p_.w + left) * c, p_.kw * c, src_end);
        to += p_.kw * c;
      } else if (together) {
        // Taps before, within and behind the row.
        const int64_t before = std::clamp<int64_t>(-left, 0, p_.kw);
        const int64_t end = std::clamp<int64_t>(p_.w - left, before, p_.kw);
        to = fill(to, before * c);
        if (end > before) copy_bytes(to, src + (y * p_.w + left + before) * c, (end - before) * c, src_end);
        to = fill(to + (end - before) * c, (p_.kw - end) * c);
      } else {
        for (int64_t kx = 0; kx < p_.kw; ++kx) {
          const int64_t x = left + kx * p_.dw;
          if (x < 0 || x >= p_.w) {
            to = fill(to, c);
          } else {
            std::memcpy(to, src + (y * p_.w + x) * p_.c, static_cast<size_t>(c));
            to += c;
          }
        }
      }
    }
    for (int64_t i = 0; i < rest; ++i) *to++ = 0;
    if (++ox == p_.ow) ++oy, ox = 0;
  }
}

}  // namespace softneuro
