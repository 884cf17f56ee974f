#include "layers/winograd_encode/winograd_encode.h"

namespace softneuro {

void winograd_encode_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const WinogradShape s = winograd_encode_shape(layer, {in[0].shape});
  const int rows = s.positions_h(), columns = s.positions_w();
  const auto left = winograd_encode_matrix(rows), right = winograd_encode_matrix(columns);
  const PlaneTransform encode{left, right, rows, rows, columns, columns};
  std::vector<double> tile(static_cast<size_t>(rows * columns));
  const int64_t step = int64_t{s.tiles()} * s.in_channels;
  double* dst = out.data;
  for (int n = 0; n < s.images; ++n)
    for (int ty = 0; ty < s.tiles_h(); ++ty)
      for (int tx = 0; tx < s.tiles_w(); ++tx)
        for (int c = 0; c < s.in_channels; ++c) {
          const double* plane = in[0].data + (int64_t{n} * s.in_channels + c) * s.h * s.w;
          for (int i = 0; i < rows; ++i)
            for (int j = 0; j < columns; ++j) {
              const int y = ty * s.tile_h + i - s.pad_top, x = tx * s.tile_w + j - s.pad_left;
              const bool inside = y >= 0 && y < s.h && x >= 0 && x < s.w;
              tile[static_cast<size_t>(i * columns + j)] = inside ? plane[int64_t{y} * s.w + x] : 0;
            }
          encode(tile.data(), 1, dst++, step);
        }
}

}  // namespace softneuro
