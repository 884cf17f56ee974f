#include "layers/conv2d_pair/tile_grid.h"

#include <algorithm>

#include "kernels/integers.h"

namespace softneuro {
namespace {

Range common(Range a, Range b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}
// Counted from `first`, as far as there are `count` of them.
Range within(Range range, int64_t first, int64_t count) {
  const Range part = common(range, {first, first + count});
  return {part.begin - first, part.end - first};
}

}  // namespace

PairAxis::PairAxis(int64_t size_, int64_t outputs_, int64_t stride_, int64_t pad_, int64_t kernel, int64_t dilation,
                   int64_t tile_, int64_t unit)
    : size(size_), outputs(outputs_), stride(stride_), pad(pad_) {
  for (int64_t i = 0; i < kernel; ++i) taps.push_back({i * dilation % stride, i * dilation / stride});
  pixels = outputs + taps.back().shift;
  tile = round_up(std::min(tile_, pixels), unit);
}

Range PairAxis::reaching(const Tap& tap, Range outs) const {
  const int64_t begin = ceil_div(std::max<int64_t>(pad - tap.phase, 0), stride);
  const int64_t end = ceil_div(std::max<int64_t>(size + pad - tap.phase, 0), stride);
  return common({begin, end}, {outs.begin + tap.shift, outs.end + tap.shift});
}

Range PairAxis::wanted(int64_t phase, Range outs) const {
  Range all{pixels, 0};
  for (const Tap& tap : taps) {
    if (tap.phase != phase) continue;
    const Range one = reaching(tap, outs);
    if (one.begin < one.end) all = {std::min(all.begin, one.begin), std::max(all.end, one.end)};
  }
  return all.begin < all.end ? all : Range{0, 0};
}

PairTiles::PairTiles(const Conv2dParams& p1, const Conv2dParams& p2, int height, int width, int lanes)
    : p1_(p1),
      p2_(p2),
      y_(p2.h, p2.oh, p2.sh, p2.pt, p2.kh, p2.dh, height, 1),
      x_(p2.w, p2.ow, p2.sw, p2.pl, p2.kw, p2.dw, width, lanes) {
  band_columns_ = x_.tiles() * x_.tile + ((p2.sw - 1) * p1.sw + (p1.kw - 1) * p1.dw) / phases();
  most_rows_ = (y_.tile * p2.sh - 1) * p1.sh + (p1.kh - 1) * p1.dh + 1;
  for (const PairAxis::Tap& row : y_.taps) {
    for (const PairAxis::Tap& column : x_.taps) {
      if (plane_of(row.phase, column.phase) < plane_count()) continue;
      Plane& plane = planes_.emplace_back(row.phase, column.phase, std::vector<int>());
      for (int64_t c = 0; c < p1.group_c(); ++c) {
        for (int64_t r = 0; r < p1.kh; ++r) {
          for (int64_t s = 0; s < p1.kw; ++s) {
            const int64_t x = column.phase * p1.sw + s * p1.dw;
            const int64_t at = c * band_plane() + r * p1.dh * band_row() + x % phases() * band_columns_ + x / phases();
            plane.taps.push_back(static_cast<int>(at));
          }
        }
      }
    }
  }
}

int PairTiles::plane_of(int64_t row_phase, int64_t column_phase) const {
  const auto found = std::find_if(planes_.begin(), planes_.end(), [&](const Plane& plane) {
    return plane.row_phase == row_phase && plane.column_phase == column_phase;
  });
  return static_cast<int>(found - planes_.begin());
}

PairTiles::Band PairTiles::band(int64_t tile_row, Range out_rows) const {
  int64_t first = y_.size, last = -1;
  for (const PairAxis::Tap& tap : y_.taps) {
    const int64_t p = tile_row * y_.tile;
    const Range rows = common(y_.wanted(tap.phase, out_rows), {p, p + y_.tile});
    if (rows.begin == rows.end) continue;
    first = std::min(first, rows.begin * y_.stride + tap.phase - y_.pad);
    last = std::max(last, (rows.end - 1) * y_.stride + tap.phase - y_.pad);
  }
  if (last < 0) return {};
  return {first * p1_.sh - p1_.pt, (last - first) * p1_.sh + (p1_.kh - 1) * p1_.dh + 1};
}

void PairTiles::set_tile(int64_t tile_row, int64_t tile_column, Range out_rows, const Band& band, ConvPairPlane* planes,
                         ConvPairTap* taps) const {
  const int64_t p = tile_row * y_.tile, q = tile_column * x_.tile;
  const Range out_columns{0, x_.outputs};
  const auto to_int = [](int64_t value) { return static_cast<int>(value); };
  for (const Plane& plane : planes_) {
    const Range rows = within(y_.wanted(plane.row_phase, out_rows), p, y_.tile);
    const Range columns = within(x_.wanted(plane.column_phase, out_columns), q, x_.tile);
    const int64_t top = (p * y_.stride + plane.row_phase - y_.pad) * p1_.sh - p1_.pt - band.top;
    *planes++ = {.row_begin = to_int(rows.begin),
                 .row_end = to_int(rows.end),
                 .column_begin = to_int(columns.begin),
                 .column_end = to_int(columns.end),
                 .src = top * band_row() + q,
                 .taps = plane.taps.data()};
  }
  for (const PairAxis::Tap& row : y_.taps) {
    for (const PairAxis::Tap& column : x_.taps) {
      const Range rows = within(y_.reaching(row, out_rows), p, y_.tile);
      const Range columns = within(x_.reaching(column, out_columns), q, x_.tile);
      *taps++ = {.plane = plane_of(row.phase, column.phase),
                 .row_begin = to_int(rows.begin),
                 .row_end = to_int(rows.end),
                 .column_begin = to_int(columns.begin),
                 .column_end = to_int(columns.end),
                 .dst = (p - row.shift) * x_.outputs + q - column.shift};
    }
  }
}

}  // namespace softneuro
