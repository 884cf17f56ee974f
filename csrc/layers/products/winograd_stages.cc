#include "layers/products/winograd_stages.h"

#include "layers/contract/validate.h"

namespace softneuro {

bool winograd_has_transform(int tile, int kernel) {
  return winograd_kernels(Isa::scalar)->has_transform(tile, kernel, 1);
}

WinogradShape winograd_stage_shape(const Layer& layer, int64_t images, int64_t out_h, int64_t out_w) {
  const auto kernel = fixed_list<2>("kernel", layer.attrs.integers("kernel"), 1);
  const auto tile = fixed_list<2>("tile", layer.attrs.integers("tile"), 1);
  WinogradShape s;
  s.images = static_cast<int>(images);
  s.out_h = static_cast<int>(out_h), s.out_w = static_cast<int>(out_w);
  s.kernel_h = static_cast<int>(kernel[0]), s.kernel_w = static_cast<int>(kernel[1]);
  s.tile_h = static_cast<int>(tile[0]), s.tile_w = static_cast<int>(tile[1]);
  if (!winograd_has_transform(s.tile_h, s.kernel_h) || !winograd_has_transform(s.tile_w, s.kernel_w)) {
    throw Error("there is no transform for tiles " + list_text(tile) + " and a kernel of " + list_text(kernel));
  }
  return s;
}

std::vector<double> winograd_encode_matrix(int positions) {
  const WinogradPoints points = winograd_points(positions);
  std::vector<double> matrix(static_cast<size_t>(positions * positions));
  for (int j = 0; j < positions; ++j) {
    const bool finite = j + 1 < positions;
    const WinogradPoly poly = winograd_poly(points, finite ? j : 0, finite ? 1 : 0);
    for (int k = 0; k <= poly.degree; ++k) matrix[static_cast<size_t>(j * positions + k)] = poly.at[k].value();
  }
  return matrix;
}

std::vector<double> winograd_decode_matrix(int outputs, int positions) {
  const WinogradPoints points = winograd_points(positions);
  std::vector<double> matrix(static_cast<size_t>(outputs * positions));
  for (int i = 0; i < outputs; ++i) {
    double* row = &matrix[static_cast<size_t>(i * positions)];
    for (int j = 0; j + 1 < positions; ++j) row[j] = (power(points.at[j], i) * winograd_scale(positions, j)).value();
    row[positions - 1] = i + 1 == outputs ? 1 : 0;
  }
  return matrix;
}

void PlaneTransform::operator()(const double* src, int64_t src_step, double* dst, int64_t dst_step) const {
  for (int y = 0; y < m; ++y) {
    for (int x = 0; x < n; ++x) {
      double sum = 0;
      for (int i = 0; i < a; ++i) {
        for (int j = 0; j < b; ++j) {
          const double factor = left[static_cast<size_t>(y * a + i)] * right[static_cast<size_t>(x * b + j)];
          if (factor != 0) sum += factor * src[(i * b + j) * src_step];
        }
      }
      dst[(y * n + x) * dst_step] = sum;
    }
  }
}

}  // namespace softneuro
