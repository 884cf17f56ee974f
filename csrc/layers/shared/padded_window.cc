#include "layers/shared/padded_window.h"

#include "base/lines.h"
#include "kernels/integers.h"
#include "layers/shared/kernel_sizes.h"

namespace softneuro {

PaddedWindow::PaddedWindow(const Conv2dParams& p, const ConvSparseKernels& kernels, bool tiled, float outside)
    : p_(p),
      tiled_(tiled),
      padding_(outside),
      lanes_(kernels.lanes),
      kernels_(&kernels),
      in_(tiled ? tile_grid(p.h, p.w, lanes_) : TileGrid{1, 1, p.h, p.w}),
      out_(tiled ? tile_grid(p.oh, p.ow, lanes_) : TileGrid{1, 1, p.oh, p.ow}),
      unit_(tiled ? lanes_ : 1) {
  vectors_ = tiled ? out_.w : ceil_div(p.ow, lanes_);
  last_ = tiled ? lanes_ : p.ow - (vectors_ - 1) * lanes_;
  dst_row_ = out_.w * unit_;
  src_channel_ = in_.h * in_.w * unit_;
  columns_ = (tiled ? out_.w : vectors_ * lanes_) + (p.kw - 1) * p.dw / p.sw;
  row_ = p.sw * columns_ * unit_;
}

int64_t PaddedWindow::plane(int64_t rows) const {
  return odd_lines(((rows - 1) * p_.sh + (p_.kh - 1) * p_.dh + 1) * row_);
}

std::vector<int32_t> PaddedWindow::offsets(int64_t channels, int64_t rows) const {
  std::vector<int32_t> offsets;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t r = 0; r < p_.kh; ++r) {
      for (int64_t s = 0; s < p_.kw; ++s) {
        const int64_t x = s * p_.dw;
        const int64_t column = x % p_.sw * columns_ + x / p_.sw;
        offsets.push_back(narrow(c * plane(rows) + r * p_.dh * row_ + column * unit_));
      }
    }
  }
  return offsets;
}

bool PaddedWindow::in_place() const {
  return tiled_ && p_.kh * p_.kw * p_.sh * p_.sw == 1 && p_.h == p_.oh && p_.w == p_.ow && p_.pt + p_.pl == 0;
}

bool PaddedWindow::stays_in_tiles() const {
  const int64_t below = (p_.kh - 1) * p_.dh, right = (p_.kw - 1) * p_.dw;
  const bool matching = in_.across == out_.across && in_.h == p_.sh * out_.h && in_.w == p_.sw * out_.w;
  const bool whole = (p_.oh - 1) * p_.sh + below < p_.h && (p_.ow - 1) * p_.sw + right < p_.w;
  return tiled_ && matching && whole && below < p_.sh && right < p_.sw && p_.pt + p_.pl == 0;
}

std::vector<int32_t> PaddedWindow::tile_offsets() const {
  std::vector<int32_t> offsets;
  for (int64_t r = 0; r < p_.kh; ++r) {
    for (int64_t s = 0; s < p_.kw; ++s) offsets.push_back(narrow((r * p_.dh * in_.w + s * p_.dw) * unit_));
  }
  return offsets;
}

bool PaddedWindow::copy(const float* first, int64_t channels, Range rows, float* to, int64_t plane) const {
  return copy_window(*kernels_, tiled_,
                     {.src = {first, narrow(in_.down), narrow(in_.across), narrow(in_.h), narrow(in_.w)},
                      .h = narrow(p_.h),
                      .w = narrow(p_.w),
                      .across = narrow(out_.across),
                      .step_h = narrow(out_.h * p_.sh),
                      .step_w = narrow(out_.w * p_.sw),
                      .top = narrow(rows.begin * p_.sh - p_.pt),
                      .left = narrow(-p_.pl),
                      .rows = narrow((rows.end - rows.begin - 1) * p_.sh + (p_.kh - 1) * p_.dh + 1),
                      .phases = narrow(p_.sw),
                      .columns = narrow(columns_),
                      .outside = padding_,
                      .dst = to,
                      .channels = narrow(channels),
                      .src_channel = src_channel_,
                      .dst_channel = plane});
}

std::vector<int32_t> PaddedWindow::outside(int64_t row) const {
  if (!tiled_) return {};
  std::vector<int32_t> elements = lanes_outside(out_, p_.oh, p_.ow, row);
  for (int32_t& element : elements) element += narrow(row * dst_row_);
  return elements;
}

bool copy_window(const ConvSparseKernels& kernels, bool tiled, const ConvSparseTiles& window) {
  if (tiled) return kernels.copy_tiles(window);
  bool finite = true;
  for (int c = 0; c < window.channels; ++c) {
    finite = kernels.copy_plane({.src = window.src.data + c * window.src_channel,
                                 .h = window.h,
                                 .w = window.w,
                                 .top = window.top,
                                 .left = window.left,
                                 .rows = window.rows,
                                 .phases = window.phases,
                                 .columns = window.columns,
                                 .dst = window.dst + c * window.dst_channel}) &&
             finite;
  }
  return finite;
}

std::vector<int32_t> lanes_outside(const TileGrid& grid, int64_t height, int64_t width, int64_t row) {
  std::vector<int32_t> elements;
  const int64_t lanes = grid.down * grid.across;
  for (int64_t x = 0; x < grid.w; ++x) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      if (lane / grid.across * grid.h + row < height && lane % grid.across * grid.w + x < width) continue;
      elements.push_back(narrow(x * lanes + lane));
    }
  }
  return elements;
}

}  // namespace softneuro
