#include <algorithm>

#include "base/lines.h"
#include "kernels/interpolate/interpolate.h"
#include "layers/shared/moving.h"
#include "layers/upsample/upsample.h"

namespace softneuro {
namespace {

class PreparedBilinear final : public Prepared {
 public:
  PreparedBilinear(const Problem& problem, const InterpolateKernels& kernels, const Layout& layout)
      : outside_(upsample_params(*problem.layer).outside) {
    const Shape &in = problem.in[0].shape, &out = problem.out().shape;
    const bool shares_first = upsample_params(*problem.layer).shares_first, flat = layout == Layout::nchw();
    kernel_ = shares_first ? (flat ? kernels.line_by_shares : kernels.lanes_by_shares)
                           : (flat ? kernels.line : kernels.lanes);
    rows_ = upsample_axis(*problem.layer, 0, in[2]);
    for (const auto& tap : upsample_axis(*problem.layer, 1, in[3]).taps) {
      if (tap.outside()) outside_columns_.push_back(static_cast<int64_t>(first_.size()));
      first_.push_back(std::max<int32_t>(static_cast<int32_t>(tap.first), 0));
      second_.push_back(std::max<int32_t>(static_cast<int32_t>(tap.second), 0));
      first_share_.push_back(tap.first_share);
      second_share_.push_back(tap.second_share);
    }
    has_outside_ = !outside_columns_.empty() ||
                   std::any_of(rows_.taps.begin(), rows_.taps.end(), [](const auto& tap) { return tap.outside(); });
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
        float* const dst = out.f32() + n * out.strides[0] + (plane * height + y) * row_out;
        if (tap.outside()) {
          std::fill_n(dst, row_out, outside_);
          continue;
        }
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
                 .dst = dst,
                 .channels = channels_,
                 .width = in.shape[3],
                 .scratch = reinterpret_cast<float*>(args.workspace.task(task))});
        for (const int64_t column : outside_columns_) std::fill_n(dst + column * channels_, channels_, outside_);
      }
    });
    if (has_outside_) zero_padding_lanes(out);
  }

 private:
  InterpolateKernel kernel_;
  float outside_;
  UpsampleAxis rows_;
  std::vector<int64_t> outside_columns_;
  bool has_outside_ = false;
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
    return std::make_unique<PreparedBilinear>(problem, kernels, info().out.layout);
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
