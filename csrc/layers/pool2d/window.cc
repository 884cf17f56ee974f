#include <algorithm>

#include "layers/pool2d/pool2d.h"
#include "layers/pool2d/windows.h"

namespace softneuro {
namespace {

PoolAxis window_axis(const PoolGeometry& g, int64_t size, int64_t outputs, bool count_include_pad) {
  PoolAxis axis;
  axis.dilation = g.dilation;
  axis.step = g.stride;
  axis.inner_begin = axis.inner_end = outputs;
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t start = i * g.stride - g.before;
    // Taps [skipped, kernel) are not before the image; those past its end are cut off.
    const int64_t skipped = start < 0 ? (-start + g.dilation - 1) / g.dilation : 0;
    const int64_t begin = start + skipped * g.dilation;
    const int64_t room = begin < size ? (size - 1 - begin) / g.dilation + 1 : 0;
    const int64_t count = std::clamp<int64_t>(g.kernel - skipped, 0, room);
    axis.spans.push_back({count > 0 ? begin : 0, count});
    const int64_t padded = std::min(start + g.kernel, size + g.after) - start;
    const int64_t divisor = count_include_pad ? padded : count;
    axis.scale.push_back(count == 0 ? 0.0f : 1.0f / static_cast<float>(divisor));
    if (count == g.kernel) {
      axis.inner_begin = std::min(axis.inner_begin, i);
      axis.inner_end = i + 1;
    }
  }
  return axis;
}

}  // namespace

PoolWindows pool2d_windows(const Problem& problem) {
  const Pool2dParams p = pool2d_params(*problem.layer);
  const auto axis = [&](int i) {
    return window_axis(p.axes[static_cast<size_t>(i)], problem.in[0].shape[2 + i], problem.out().shape[2 + i],
                       p.count_include_pad);
  };
  return {p.is_max, axis(0), axis(1)};
}

void pool2d_window_routines(RoutineList& list) {
  add_pool_bytes_routines(list, "pool2d", pool2d_windows);
  add_pool_routines(list, "pool2d", pool2d_windows);
}

}  // namespace softneuro
