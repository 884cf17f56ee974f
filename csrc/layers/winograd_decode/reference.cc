#include "layers/winograd_decode/winograd_decode.h"

namespace softneuro {

void winograd_decode_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const WinogradShape s = winograd_decode_shape(layer, {in[0].shape});
  const auto left = winograd_decode_matrix(s.tile_h, s.positions_h());
  const auto right = winograd_decode_matrix(s.tile_w, s.positions_w());
  const PlaneTransform decode{left, right, s.tile_h, s.positions_h(), s.tile_w, s.positions_w()};
  std::vector<double> bias(static_cast<size_t>(s.out_channels), 0.0);
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  std::vector<double> tile(static_cast<size_t>(s.tile_h * s.tile_w));
  const int64_t step = int64_t{s.tiles()} * s.out_channels;
  const double* src = in[0].data;
  for (int n = 0; n < s.images; ++n)
    for (int ty = 0; ty < s.tiles_h(); ++ty)
      for (int tx = 0; tx < s.tiles_w(); ++tx)
        for (int k = 0; k < s.out_channels; ++k) {
          decode(src++, step, tile.data(), 1);
          double* plane = out.data + (int64_t{n} * s.out_channels + k) * s.out_h * s.out_w;
          for (int i = 0; i < s.tile_h; ++i)
            for (int j = 0; j < s.tile_w; ++j) {
              const int y = ty * s.tile_h + i, x = tx * s.tile_w + j;
              if (y >= s.out_h || x >= s.out_w) continue;
              plane[int64_t{y} * s.out_w + x] =
                  tile[static_cast<size_t>(i * s.tile_w + j)] + bias[static_cast<size_t>(k)];
            }
        }
}

}  // namespace softneuro
