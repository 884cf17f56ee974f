#include "base/lines.h"
#include "kernels/interpolate/interpolate.h"
#include "layers/moving.h"
#include "layers/upsample/upsample.h"

namespace softneuro {
namespace {

class PreparedBilinear final : public Prepared {
 public:
  PreparedBilinear(const Problem& problem, InterpolateKernel kernel, const Layout& layout) : kernel_(kernel) {
    const UpsampleParams p = upsample_params(*problem.layer);
    const Shape &in = problem.in[0].shape, &out = problem.out().shape;
    rows_ = upsample_axis(p, 0, in[2]);
    for (const auto& tap : upsample_axis(p, 1, in[3]).taps) {
      first_.push_back(static_cast<int32_t>(tap.first));
      second_.push_back(static_cast<int32_t>(tap.second));
      first_share_.push_back(tap.first_share);
      second_share_.push_back(tap.second_share);
    }
    channels_ = layout == Layout::nhwc() ? in[1] : layout.block;
    planes_ = layout == Layout::nhwc() ? 1 : (in[1] + channels_ - 1) / channels_;
    tasks_ = std::min(out[0] * planes_ * out[2], task_count(out.elements(), problem.threads));
    if (layout == Layout::nchw()) scratch_ = whole_lines(in[3]);
  }

  WorkspaceSize workspace() const override {
    return {.task = static_cast<size_t>(scratch_) * sizeof(float), .tasks = tasks_};
  }

  void run(const RunArgs& args) const override {
    const TensorView &in = args.in[0], &out = args.out;
    const int64_t height = out.shape[2], items = images(out) * planes_ * height;
    const int64_t row_in = in.shape[3] * channels_, row_out = out.shape[3] * channels_;
    args.parallel_for(tasks_, [&](int64_t task) {
      const Range part = split_range(items, tasks_, task);
      for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t n = item / height / planes_, plane = item / height % planes_, y = item % height;
        const auto& tap = rows_.taps[static_cast<size_t>(y)];
        const float* src = in.f32() + n * in.strides[0] + plane * in.shape[2] * row_in;
        kernel_({.above = src + tap.first * row_in,
                 .below = src + tap.second * row_in,
                 .above_share = tap.first_share,
                 .below_share = tap.second_share,
                 .first = first_.data(),
                 .second = second_.data(),
                 .first_share = first_share_.data(),
                 .second_share = second_share_.data(),
                 .outputs = out.shape[3],
                 .dst = out.f32() + n * out.strides[0] + (plane * height + y) * row_out,
                 .channels = channels_,
                 .width = in.shape[3],
                 .scratch = reinterpret_cast<float*>(args.workspace.task(task))});
      }
    });
  }

 private:
  InterpolateKernel kernel_;
  UpsampleAxis rows_;
  std::vector<int32_t> first_, second_;  // of the columns, as the kernel wants them
  std::vector<float> first_share_, second_share_;
  int64_t channels_ = 1, planes_ = 1, tasks_ = 1, scratch_ = 0;
};

class UpsampleBilinear final : public Routine {
 public:
  UpsampleBilinear(Isa isa, const Layout& layout) : Routine(vector_info("upsample", "bilinear", isa, layout, layout)) {}

  Refusal check(const Problem& problem) const override {
    if (!upsample_params(*problem.layer).bilinear) return "nearest";
    return problem.layer->post.empty() ? Refusal() : Refusal("takes no post-ops");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const InterpolateKernels kernels = interpolate_kernels(info().isa);
    const Layout& layout = info().out.layout;
    return std::make_unique<PreparedBilinear>(problem, layout == Layout::nchw() ? kernels.line : kernels.lanes, layout);
  }
};

}  // namespace

void upsample_bilinear_routines(RoutineList& list) {
  for (Isa isa : isas_best_first()) {
    if (interpolate_kernels(isa).lanes == nullptr) continue;
    list.add<UpsampleBilinear>(isa, Layout::blocked(isa_block(isa)));
    list.add<UpsampleBilinear>(isa, Layout::nhwc());
    list.add<UpsampleBilinear>(isa, Layout::nchw());
  }
}

}  // namespace softneuro
