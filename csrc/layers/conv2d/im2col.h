// Patches of an image as the columns of a matrix, a block of columns at a time.
#pragma once

#include "layers/conv2d/conv2d.h"

namespace softneuro {

// Columns [begin, end) of the matrix [group_c * kh * kw][oh * ow] whose column holds an output pixel's patch, as gemm's
// packed b: dst[panel][row][lane], panels of `panel` vectors of `lanes` columns, the last one of as many as it needs.
// Columns past `end` and taps outside the image are zero. `src` is the first plane of the group.
void im2col_panels(const Conv2dParams& p, const float* src, int64_t begin, int64_t end, int lanes, int panel,
                   float* dst);

}  // namespace softneuro
