// Poolings of quantized blobs whose channels are side by side: maxima as they are, averages by integer sums.
#include "kernels/pool_bytes/pool_bytes.h"
#include "layers/pool2d/windows.h"
#include "layers/quantized/quantization.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class PreparedPoolBytes final : public Prepared {
 public:
  PreparedPoolBytes(const Problem& problem, PoolWindows windows, PoolBytesKernel kernel)
      : windows_(std::move(windows)), kernel_(kernel), channels_(problem.in[0].shape[1]) {
    const Shape &in = problem.in[0].shape, &out = problem.out().shape;
    // Too few rows to share out (a global pooling): parts of the channels.
    if (out[0] * out[2] < problem.threads) parts_ = std::clamp<int64_t>(channels_ / 64, 1, problem.threads);
    tasks_ = std::min(out[0] * out[2] * parts_, task_count(in.elements() + out.elements(), problem.threads));
    const Quantization &from = *problem.in[0].quantization, &to = *problem.out().quantization;
    zero_ = from.zero_points[0];
    dst_zero_ = to.zero_points[0];
    least_ = to.least - dst_zero_, most_ = to.most - dst_zero_;
    const double unit = static_cast<double>(from.scales[0]) / static_cast<double>(to.scales[0]);
    for (float& scale : windows_.rows.scale) scale = static_cast<float>(static_cast<double>(scale) * unit);
  }

  WorkspaceSize workspace() const override {
    return {.task = windows_.is_max ? 0 : static_cast<size_t>(channels_) * sizeof(int32_t), .tasks = tasks_};
  }

  void run(const RunArgs& args) const override {
    const TensorView &in = args.in[0], &out = args.out;
    const int64_t height = out.shape[2], items = out.shape[0] * height * parts_;
    args.parallel_for(tasks_, [&](int64_t task) {
      auto* sums = windows_.is_max ? nullptr : reinterpret_cast<int32_t*>(args.workspace.task(task));
      const Range part = split_range(items, tasks_, task);
      for (int64_t item = part.begin; item < part.end; ++item) {
        run_row(in, out, item / parts_ / height, item / parts_ % height, split_range(channels_, parts_, item % parts_),
                sums);
      }
    });
  }

 private:
  void run_row(const TensorView& in, const TensorView& out, int64_t n, int64_t y, Range channels, int32_t* sums) const {
    const PoolAxis &rows = windows_.rows, &cols = windows_.cols;
    const PoolSpan span = rows.spans[static_cast<size_t>(y)];
    const int64_t row = in.shape[3] * channels_, out_row = out.shape[3] * channels_;
    const auto* src = static_cast<const uint8_t*>(in.at(n * in.strides[0] + span.begin * row + channels.begin));
    kernel_({.src = src,
             .row_stride = rows.dilation * row,
             .rows = span.count,
             .pixel = channels_,
             .dilation = cols.dilation,
             .spans = cols.spans.data(),
             .outputs = out.shape[3],
             .dst = static_cast<uint8_t*>(out.at(n * out.strides[0] + y * out_row + channels.begin)),
             .dst_pixel = channels_,
             .channels = channels.end - channels.begin,
             .is_max = windows_.is_max,
             .zero = zero_,
             .scale = cols.scale.data(),
             .row_scale = rows.scale[static_cast<size_t>(y)],
             .least = least_,
             .most = most_,
             .dst_zero = dst_zero_,
             .sums = sums});
  }

  PoolWindows windows_;
  PoolBytesKernel kernel_;
  int64_t channels_, parts_ = 1, tasks_ = 1;
  int32_t zero_ = 0, dst_zero_ = 0, least_ = 0, most_ = 0;
};

class PoolBytes final : public Routine {
 public:
  PoolBytes(const char* type, Isa isa, MakePoolWindows make)
      : Routine(bytes_info(type, "bytes", isa, Layout::nhwc())), make_(make) {}

  Refusal check(const Problem& problem) const override {
    const PostOps& post = problem.layer->post;
    if (post.residual || post.activation.kind != ActivationKind::none) return "takes no post-ops";
    for (const TensorDesc* desc : {&problem.in[0], &problem.out()}) {
      if (const Refusal refusal = check_unsigned(*desc); !refusal.accepted()) return refusal;
    }
    if (make_(problem).is_max) {
      return same_quantization(problem.in[0], problem.out()) ? Refusal() : "a maximum is one of its inputs";
    }
    const Shape& in = problem.in[0].shape;
    constexpr int64_t most = int64_t{1} << 23;
    return in[2] * in[3] < most ? Refusal() : Refusal("sums of so many bytes are not exact");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedPoolBytes>(problem, make_(problem), pool_bytes_kernel(info().isa));
  }

 private:
  MakePoolWindows make_;
};

}  // namespace

void add_pool_bytes_routines(RoutineList& list, const char* type, MakePoolWindows make) {
  for (const Isa isa : isas_best_first()) {
    if (pool_bytes_kernel(isa) != nullptr) list.add<PoolBytes>(type, isa, make);
  }
}

}  // namespace softneuro
