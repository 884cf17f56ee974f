// A prepared convolution that can be asked for some rows of an image, for what goes on with them while they are in
// cache.
#pragma once

#include <algorithm>
#include <optional>

#include "base/threads.h"
#include "layers/contract/routine.h"
#include "layers/conv2d/conv2d.h"
#include "layers/shared/split.h"

namespace softneuro {

// Rows of the input that output rows [begin, end) need.
inline Range rows_below(const Conv2dParams& p, int64_t begin, int64_t end) {
  const int64_t top = begin * p.sh - p.pt, bottom = (end - 1) * p.sh - p.pt + (p.kh - 1) * p.dh + 1;
  const int64_t first = std::clamp<int64_t>(top, 0, p.h);
  return {first, std::clamp<int64_t>(bottom, first, p.h)};
}
// The most input rows that any `rows` output rows read.
inline int64_t most_rows_below(const Conv2dParams& p, int64_t rows) {
  return std::min(p.h, (rows - 1) * p.sh + (p.kh - 1) * p.dh + 1);
}

struct Conv2dRows {
  const void* src = nullptr;  // one image, as the routine reads it
  // The rows that src has, at least those that are needed; none: all. From routines that read row-major reals only.
  std::optional<Range> src_rows = {};
  float* dst = nullptr;  // [out channels / c][plane_rows][out_w][c], of which the first rows are written
  Range rows{0, 0};      // of the output
  // At least the number of rows, rounded up to a multiple of row_step(): the rows up to there may be written, too.
  int64_t plane_rows = 0;
  std::byte* scratch = nullptr;  // rows_scratch(plane_rows) bytes, 64-byte aligned
};

// Problems with a residual have no such rows.
class PreparedConv2dRows : public PreparedSplit {
 public:
  using PreparedSplit::PreparedSplit;

  virtual int64_t row_step() const { return 1; }
  virtual size_t rows_scratch(int64_t plane_rows) const = 0;
  virtual void run_rows(const Conv2dRows& call) const = 0;
};

// conv2d's routines whose Prepared is a PreparedConv2dRows. All write nchw{c}c.
void conv2d_first(RoutineList& list);
void conv2d_first_winograd(RoutineList& list);
void conv2d_first_bfloat16(RoutineList& list);
void conv2d_winograd(RoutineList& list);

}  // namespace softneuro
