// What the layers have in common that are stages of a Winograd convolution (kernels/winograd_stages).
#pragma once

#include <vector>

#include "kernels/winograd_stages/winograd_stages.h"
#include "layers/contract/layer.h"

namespace softneuro {

// From the attributes `kernel`[2], `tile`[2] and what is known of the images; all but channels and padding. Throws
// Error for sizes without a transform.
WinogradShape winograd_stage_shape(const Layer& layer, int64_t images, int64_t out_h, int64_t out_w);
bool winograd_has_transform(int tile, int kernel);

// B' [position][sample] and A' [output][position] along one axis, in double.
std::vector<double> winograd_encode_matrix(int positions);
std::vector<double> winograd_decode_matrix(int outputs, int positions);

// dst = left * src * right', row-major: src is [a][b], left [m][a], right [n][b]; a column of dst's images at a time.
struct PlaneTransform {
  const std::vector<double>&left, &right;
  int m, a, n, b;
  // Samples and results are `src_step` and `dst_step` apart.
  void operator()(const double* src, int64_t src_step, double* dst, int64_t dst_step) const;
};

}  // namespace softneuro
