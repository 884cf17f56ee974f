#include "layers/conv2d_pair/band_geometry.h"

#include <algorithm>
#include <cmath>

#include "kernels/integers.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/shared/padded_window.h"
#include "layers/weights/sparse_lists.h"

namespace softneuro {
namespace {

// Gives the remainders that a kernel's taps leave when they are divided by a stride.
std::vector<int64_t> used_phases(int64_t kernel, int64_t dilation, int64_t stride) {
  std::vector<int64_t> phases;
  for (int64_t i = 0; i < kernel; ++i) {
    const int64_t phase = i * dilation % stride;
    if (std::find(phases.begin(), phases.end(), phase) == phases.end()) phases.push_back(phase);
  }
  return phases;
}

}  // namespace

BandGeometry::BandGeometry(const Conv2dParams& p1, const Conv2dParams& p2, int lanes, bool tiled, int64_t rows)
    : p1_(p1),
      p2_(p2),
      tiled_(tiled),
      lanes_(lanes),
      unit_(tiled ? lanes : 1),
      in_(tiled ? tile_grid(p1.h, p1.w, lanes) : TileGrid{1, 1, p1.h, p1.w}),
      out_(tiled ? tile_grid(p2.oh, p2.ow, lanes) : TileGrid{1, 1, p2.oh, p2.ow}),
      band_(std::min(rows, out_.h)),
      vectors_(tiled ? out_.w : ceil_div(p2.ow, lanes)),
      last_(tiled ? lanes : p2.ow - (vectors_ - 1) * lanes),
      row_phases_(used_phases(p2.kh, p2.dh, p2.sh)),
      column_phases_(used_phases(p2.kw, p2.dw, p2.sw)) {
  const int64_t read = vectors_ * lanes_ / unit_ + (p2.kw - 1) * p2.dw / p2.sw;
  between_ = {rows_between({0, band_}).end, p2.sw, tiled ? read : round_up(read, lanes_), unit_};
  const int64_t phases = p1.sw * p2.sw;
  source_ = {source_rows(between_.rows), phases,
             between_.columns + ((p2.sw - 1) * p1.sw + (p1.kw - 1) * p1.dw) / phases, unit_};
}

void BandGeometry::find_padding() {
  const auto inside = [&](int64_t lane, int64_t y, int64_t x) {
    y += lane / out_.across * out_.h * p2_.sh - p2_.pt, x += lane % out_.across * out_.w * p2_.sw - p2_.pl;
    return y >= 0 && y < p2_.h && x >= 0 && x < p2_.w;
  };
  for (int64_t y = 0; y < rows_between({0, out_.h}).end; ++y) {
    std::vector<int32_t>& list = padding_.emplace_back();
    for (int64_t x = 0; x < between_.phases * between_.columns; ++x) {
      for (int64_t lane = 0; lane < unit_; ++lane) {
        if (!inside(lane, y, x)) list.push_back(narrow(between_.at(0, x) + lane));
      }
    }
  }
  for (int64_t y = 0; y < out_.h; ++y) {
    outside_.push_back(tiled_ ? lanes_outside(out_, p2_.oh, p2_.ow, y) : std::vector<int32_t>());
  }
}

Range BandGeometry::rows_between(Range outs) const {
  return {outs.begin * p2_.sh, (outs.end - 1) * p2_.sh + (p2_.kh - 1) * p2_.dh + 1};
}

bool BandGeometry::is_padding(int64_t row) const { return static_cast<int64_t>(padding(row).size()) == between_.row(); }

bool BandGeometry::skips() const {
  return static_cast<int64_t>(row_phases_.size()) < p2_.sh || static_cast<int64_t>(column_phases_.size()) < p2_.sw;
}

bool BandGeometry::copy(const ConvSparseKernels& kernels, const float* first, int64_t channels, Range rows,
                        float* to) const {
  return copy_window(kernels, tiled_,
                     {.src = {first, narrow(in_.down), narrow(in_.across), narrow(in_.h), narrow(in_.w)},
                      .h = narrow(p1_.h),
                      .w = narrow(p1_.w),
                      .across = narrow(out_.across),
                      .step_h = narrow(out_.h * p2_.sh * p1_.sh),
                      .step_w = narrow(out_.w * p2_.sw * p1_.sw),
                      .top = narrow((rows.begin - p2_.pt) * p1_.sh - p1_.pt),
                      .left = narrow(-p2_.pl * p1_.sw - p1_.pl),
                      .rows = narrow(source_rows(rows.end - rows.begin)),
                      .phases = narrow(source_.phases),
                      .columns = narrow(source_.columns),
                      .dst = to,
                      .channels = narrow(channels),
                      .src_channel = source_channel(),
                      .dst_channel = source_.floats()});
}

std::vector<int32_t> BandGeometry::first_offsets(int64_t channels, int64_t column_phase) const {
  std::vector<int32_t> offsets;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t r = 0; r < p1_.kh; ++r) {
      for (int64_t s = 0; s < p1_.kw; ++s) {
        const int64_t x = column_phase * p1_.sw + s * p1_.dw;
        offsets.push_back(narrow(c * source_.floats() + source_.at(r * p1_.dh, x)));
      }
    }
  }
  return offsets;
}

std::vector<int32_t> BandGeometry::second_offsets(int64_t channels) const {
  std::vector<int32_t> offsets;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t r = 0; r < p2_.kh; ++r) {
      for (int64_t s = 0; s < p2_.kw; ++s) {
        offsets.push_back(narrow(c * between_.floats() + between_.at(r * p2_.dh, s * p2_.dw)));
      }
    }
  }
  return offsets;
}

void mend_nonfinite(const Conv2dParams& p, const Mending& m) {
  const auto spread = [&](int64_t c, int64_t y, int64_t x, int64_t lane) {
    for (int64_t tap = 0; tap < p.kh * p.kw; ++tap) {
      const int64_t top = y - tap / p.kw * p.dh, left = x - tap % p.kw * p.dw;
      if (top < 0 || left < 0 || top % p.sh != 0 || left % p.sw != 0) continue;
      if (top / p.sh >= m.to.rows || left / p.sw >= m.to.phases * m.to.columns) continue;
      float* const to = m.dst + m.to.at(top / p.sh, left / p.sw) + lane;
      const auto code = static_cast<uint16_t>(c * p.kh * p.kw + tap);
      for (const SparseRows* list = m.lists; list != m.lists + m.list_count; ++list) {
        spread_nonfinite(*list, code, to, m.dst_channel);
      }
    }
  };
  for (int64_t c = 0; c < m.channels; ++c) {
    for (int64_t y = 0; y < m.from.rows; ++y) {
      for (int64_t x = 0; x < m.from.phases * m.from.columns; ++x) {
        for (int64_t lane = 0; lane < m.from.unit; ++lane) {
          if (!std::isfinite(m.src[c * m.src_channel + m.from.at(y, x) + lane])) spread(c, y, x, lane);
        }
      }
    }
  }
}

}  // namespace softneuro
