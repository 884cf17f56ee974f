// Maxima on tiled blobs: every tap of a window is a vector of the same pixel of all tiles.
#include <algorithm>
#include <limits>

#include "base/lines.h"
#include "layers/pool2d/pool2d.h"
#include "layers/pool2d/windows.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/shared/moving.h"
#include "layers/shared/padded_window.h"

namespace softneuro {
namespace {

// Its windows as those of a convolution.
Conv2dParams as_conv(const Problem& problem) {
  const Pool2dParams pool = pool2d_params(*problem.layer);
  const Shape &in = problem.in[0].shape, &out = problem.out().shape;
  const auto& [rows, columns] = pool.axes;
  Conv2dParams p;
  p.n = in[0], p.c = p.k = in[1], p.h = in[2], p.w = in[3], p.oh = out[2], p.ow = out[3];
  p.kh = rows.kernel, p.kw = columns.kernel, p.sh = rows.stride, p.sw = columns.stride;
  p.dh = rows.dilation, p.dw = columns.dilation, p.pt = rows.before, p.pl = columns.before;
  return p;
}

class PreparedTilesPool final : public Prepared {
 public:
  PreparedTilesPool(const Problem& problem, Isa isa)
      : window_(as_conv(problem), *conv_sparse_kernels(isa), true, -std::numeric_limits<float>::infinity()),
        kernel_(pool_kernels(isa).max_vectors),
        lanes_(conv_sparse_kernels(isa)->lanes) {
    const Shape& out = problem.out().shape;
    planes_ = out[0] * out[1];
    if (planes_ * out[2] * out[3] == 0) return;
    in_place_ = window_.stays_in_tiles();
    offsets_ = in_place_ ? window_.tile_offsets() : window_.offsets(1, window_.rows());
    for (int64_t row = 0; row < window_.rows(); ++row) {
      const std::vector<int32_t> more = window_.outside(row);
      outside_.insert(outside_.end(), more.begin(), more.end());
    }
    tasks_ = std::min(planes_, task_count(problem.in[0].shape.elements(), problem.threads));
    const int64_t plane_bytes = window_.plane(window_.rows()) * static_cast<int64_t>(sizeof(float));
    together_ = in_place_ ? out[1] : std::clamp<int64_t>(l2_bytes() / 4 / plane_bytes, 1, out[1]);
    scratch_ = in_place_ ? 0 : round_to_line(static_cast<size_t>(together_ * plane_bytes));
  }

  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = tasks_}; }

  void run(const RunArgs& args) const override {
    const TensorView &in = args.in[0], &out = args.out;
    const int64_t channels = out.shape[1], window_size = window_.plane(window_.rows());
    args.parallel_for(tasks_, [&](int64_t task) {
      auto* const window = reinterpret_cast<float*>(args.workspace.task(task));
      const Range part = split_range(planes_, tasks_, task);
      for (int64_t plane = part.begin; plane < part.end;) {
        const int64_t n = plane / channels, c = plane % channels;
        const int64_t count = std::min({together_, part.end - plane, channels - c});
        const float* const from = in.f32() + n * in.strides[0] + c * window_.src_channel();
        if (!in_place_) window_.copy(from, count, {0, window_.rows()}, window, window_size);
        for (int64_t i = 0; i < count; ++i) {
          float* const to = out.f32() + n * out.strides[0] + (c + i) * window_.dst_channel();
          kernel_({.src = in_place_ ? from + i * window_.src_channel() : window + i * window_size,
                   .src_row = in_place_ ? window_.tile_row() : window_.src_row(),
                   .src_column = in_place_ ? window_.tile_column() : lanes_,
                   .offsets = offsets_.data(),
                   .taps = narrow(static_cast<int64_t>(offsets_.size())),
                   .dst = to,
                   .rows = narrow(window_.rows()),
                   .vectors = narrow(window_.vectors())});
          for (const int32_t at : outside_) to[at] = 0;
        }
        plane += count;
      }
    });
  }

 private:
  PaddedWindow window_;
  decltype(PoolKernels::max_vectors) kernel_;
  int64_t lanes_;
  bool in_place_ = false;
  std::vector<int32_t> offsets_, outside_;  // of taps; of lanes outside the image
  int64_t planes_ = 0, tasks_ = 0;
  int64_t together_ = 1;  // planes whose windows are copied in one go
  size_t scratch_ = 0;
};

class TilesPool final : public Routine {
 public:
  explicit TilesPool(Isa isa)
      : Routine(vector_info("pool2d", "tiles", isa, Layout::tiled(isa_block(isa)), Layout::tiled(isa_block(isa)))) {}

  Refusal check(const Problem& problem) const override {
    if (!pool2d_params(*problem.layer).is_max) return "only maxima";
    if (!problem.layer->post.empty()) return "takes no post-ops";
    const Conv2dParams p = as_conv(problem);
    if (const Refusal sizes = check_kernel_sizes({p.h * p.w, p.kh * p.kw}); !sizes.accepted()) return sizes;
    const PaddedWindow window(p, *conv_sparse_kernels(info().isa), true);
    return window.stays_in_tiles() || window.plane(window.rows()) * int64_t{4} <= static_cast<int64_t>(most_scratch)
               ? Refusal()
               : Refusal("planes are too large for a window");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedTilesPool>(problem, info().isa);
  }
};

}  // namespace

void pool2d_tiles(RoutineList& list) {
  for (const Isa isa : isas_best_first()) list.add<TilesPool>(isa);
}

}  // namespace softneuro
