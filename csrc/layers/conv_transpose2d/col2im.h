// The scatter of a transposed convolution: columns of products added to the output where the kernel's taps reach.
#pragma once

#include "layers/conv_transpose2d/conv_transpose2d.h"

namespace softneuro {

// Adds columns[tap][pixel] (kh * kw taps, the input's rows [row_begin, row_end), `pitch` floats from tap to tap) to one
// plane of the output.
void col2im_add(const ConvTranspose2dParams& p, const float* columns, int64_t pitch, int64_t row_begin, int64_t row_end,
                float* plane);

}  // namespace softneuro
