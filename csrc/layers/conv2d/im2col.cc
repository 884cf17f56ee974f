#include "layers/conv2d/im2col.h"

#include <algorithm>
#include <cstring>

#include "base/threads.h"

namespace softneuro {
namespace {

// Outputs [begin, end) of a row of `outputs`, whose tap lies inside an input axis of `size`: index * stride + offset.
Range inside(int64_t size, int64_t outputs, int64_t stride, int64_t offset) {
  const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t end = size - offset <= 0 ? 0 : (size - offset + stride - 1) / stride;
  return {std::min(begin, outputs), std::clamp(end, std::min(begin, outputs), outputs)};
}

// A tap's part of one panel: short, so that a call of memcpy would cost more than the copy.
inline void copy_piece(const float* from, int64_t stride, Range valid, int64_t count, float* to) {
  int64_t i = 0;
  for (; i < valid.begin; ++i) to[i] = 0;
  if (stride == 1) {
    for (; i + 4 <= valid.end; i += 4) std::memcpy(to + i, from + i, 4 * sizeof(float));
    for (; i < valid.end; ++i) std::memcpy(to + i, from + i, sizeof(float));
  } else {
    for (; i + 4 <= valid.end; i += 4) {
      const float four[] = {from[i * stride], from[(i + 1) * stride], from[(i + 2) * stride], from[(i + 3) * stride]};
      std::memcpy(to + i, four, sizeof four);
    }
    for (; i < valid.end; ++i) to[i] = from[i * stride];
  }
  for (; i < count; ++i) to[i] = 0;
}

}  // namespace

void im2col_panels(const Conv2dParams& p, const float* src, int64_t begin, int64_t end, int lanes, int panel,
                   float* dst) {
  const int64_t taps = p.kh * p.kw, rows = p.group_c() * taps, plane = p.h * p.w;
  int64_t width = 0;
  for (int64_t first = begin; first < end; first += width, dst += rows * width) {
    width = std::min<int64_t>(panel, (end - first + lanes - 1) / lanes) * lanes;
    const int64_t last = std::min(first + width, end);
    for (int64_t row = 0; last - first < width && row < rows; ++row) {
      std::fill(dst + row * width + (last - first), dst + (row + 1) * width, 0.f);
    }
    // A panel covers pieces of one or more output rows. A tap is at the same place of every channel, so channels are
    // the innermost loop.
    for (int64_t at = first; at < last;) {
      const int64_t oy = at / p.ow, ox = at % p.ow, count = std::min(p.ow - ox, last - at);
      for (int64_t ky = 0; ky < p.kh; ++ky) {
        const int64_t y = oy * p.sh + ky * p.dh - p.pt;
        for (int64_t kx = 0; kx < p.kw; ++kx) {
          float* to = dst + (ky * p.kw + kx) * width + (at - first);
          const int64_t x = ox * p.sw + kx * p.dw - p.pl;
          const Range valid = y < 0 || y >= p.h ? Range{count, count} : inside(p.w, count, p.sw, x);
          const float* from = src + y * p.w + x;
          for (int64_t c = 0; c < p.group_c(); ++c, to += taps * width, from += plane) {
            copy_piece(from, p.sw, valid, count, to);
          }
        }
      }
      at += count;
    }
  }
}

}  // namespace softneuro
