// Rows that are normalised one by one, which layer_norm, group_norm and rms_norm differ in: (x - mean) / sqrt(variance
// + eps) * weight + bias of row-major blobs, each row one run of memory with statistics of its own.
#pragma once

#include "layers/contract/routine.h"

namespace softneuro {

struct NormalizedRows {
  int64_t images = 1, rows = 1;    // rows of an image
  int64_t size = 1;                // elements of a row
  int64_t plane = 1, weights = 1;  // element i of all rows has weight i / plane % weights
  double eps = 0;
  bool about_zero = false;  // the variance is about zero, and no mean is subtracted

  size_t weight_of(int64_t element) const { return static_cast<size_t>(element / plane % weights); }
};

void normalize_reference(const Layer& layer, const NormalizedRows& rows, const double* x, double* dst);

}  // namespace softneuro
