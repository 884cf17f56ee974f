#include "layers/adaptive_pool2d/adaptive_pool2d.h"
#include "layers/pool2d/pool2d.h"
#include "layers/pool2d/windows.h"

namespace softneuro {
namespace {

PoolAxis adaptive_axis(int64_t size, int64_t outputs) {
  PoolAxis axis;
  for (int64_t i = 0; i < outputs; ++i) {
    const AdaptiveWindow window = adaptive_window(i, outputs, size);
    axis.spans.push_back({window.begin, window.end - window.begin});
    axis.scale.push_back(1.0f / static_cast<float>(window.end - window.begin));
  }
  if (outputs > 0 && size % outputs == 0) {
    axis.step = size / outputs;
    axis.inner_end = outputs;
  }
  return axis;
}

PoolWindows adaptive_windows(const Problem& problem) {
  const Shape &in = problem.in[0].shape, &out = problem.out().shape;
  return {pool_is_max(problem.layer->attrs.text("function")), adaptive_axis(in[2], out[2]),
          adaptive_axis(in[3], out[3])};
}

}  // namespace

void adaptive_pool2d_window_routines(RoutineList& list) {
  add_pool_routines(list, "adaptive_pool2d", adaptive_windows);
}

}  // namespace softneuro
