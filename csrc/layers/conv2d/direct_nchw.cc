// Direct convolution on row-major blobs: for few channels per group, depthwise included, where a matrix product is
// thin.
#include <algorithm>

#include "kernels/conv_nchw/conv_nchw.h"
#include "layers/conv2d/blocked.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

ConvNchwShape nchw_shape(const Conv2dParams& p) {
  const ConvDirectShape s = direct_shape(p);
  return {s.groups,   s.in_channels, s.out_channels, s.h,          s.w,          s.out_h,   s.out_w,   s.kernel_h,
          s.kernel_w, s.stride_h,    s.stride_w,     s.dilation_h, s.dilation_w, s.pad_top, s.pad_left};
}

class PreparedDirectNchw final : public Prepared {
 public:
  PreparedDirectNchw(const Problem& problem, const ConvNchwKernels& kernels, int row_block, SplitBy by,
                     std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), run_(kernels.run), residual_(problem.layer->post.residual) {
    const Conv2dParams p = conv2d_params(problem);
    args_.shape = nchw_shape(p);
    args_.row_block = row_block;
    args_.weights = packed_floats(packed_.get());
    args_.epilogue.activation = problem.layer->post.activation;
    if (problem.layer->find_weight("bias") != nullptr) {
      args_.epilogue.bias = args_.weights + conv_nchw_packed_size(args_.shape);
    }
    if (p.empty()) return;
    split_ = WorkSplit(p.n, conv_nchw_panels(args_.shape), p.oh, problem.threads, by);
    scratch_ = (kernels.scratch_bytes(args_.shape, row_block) + 63) / 64 * 64;
  }

  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = split_.tasks}; }

  void run(const RunArgs& args) const override {
    args.parallel_for(split_.tasks, [&](int64_t task) {
      split_.for_task(task, [&](int64_t image, Range panels, Range rows) {
        ConvNchwArgs call = args_;
        call.src = args.in[0].f32() + image * args.in[0].strides[0];
        call.dst = args.out.f32() + image * args.out.strides[0];
        if (residual_) call.epilogue.residual = args.in[1].f32() + image * args.in[1].strides[0];
        run_(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(rows.begin),
             static_cast<int>(rows.end), args.workspace.task(task));
      });
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  decltype(ConvNchwKernels::run) run_;
  ConvNchwArgs args_;
  WorkSplit split_;
  bool residual_;
  size_t scratch_ = 0;  // bytes of a task
};

class DirectNchwConv2d final : public Routine {
 public:
  explicit DirectNchwConv2d(Isa isa)
      : Routine({.layer_type = "conv2d", .algorithm = "direct", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override { return check_int_sizes(conv2d_params(problem)); }

  std::vector<std::string> param_names() const override { return {"rows", "split"}; }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    // The copied rows of a group's channels should stay in L2 while its panels pass over them.
    const int64_t budget = static_cast<int64_t>(std::max<size_t>(caches().l2, 256 << 10)) / 4;
    const int64_t row = (p.ow + 16) * p.sw + p.kw * p.dw;
    const int64_t in_rows = std::max<int64_t>(budget / (row * p.group_c() * 4), 1);
    const int64_t fit = (in_rows - (p.kh - 1) * p.dh - 1) / p.sh + 1;
    const int rows = static_cast<int>(std::clamp<int64_t>(fit, 1, std::max<int64_t>(p.oh, 1)));
    const int split = p.groups > 1 ? 1 : 0;
    if (problem.threads == 1) return {{rows, split}};
    return {{rows, split}, {rows, 1 - split}};
  }

  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning&) const override {
    const ConvNchwShape shape = nchw_shape(conv2d_params(problem));
    const auto size = static_cast<int64_t>(conv_nchw_packed_size(shape));
    const Constant* bias = problem.layer->find_weight("bias");
    auto packed = std::make_shared<PackedFloats>(size + (bias != nullptr ? (*bias)->elements() : 0));
    conv_nchw_pack(shape, problem.layer->weight("weight")->values().get(), packed->data());
    if (bias != nullptr) std::copy_n((*bias)->values().get(), (*bias)->elements(), packed->data() + size);
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    if (tuning[0] < 1) throw Error("rows must be positive, not " + std::to_string(tuning[0]));
    return std::make_unique<PreparedDirectNchw>(problem, *conv_nchw_kernels(info().isa), tuning[0],
                                                parse_split(tuning[1]), std::move(packed));
  }
};

}  // namespace

void conv2d_direct_nchw(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DirectNchwConv2d>(isa);
}

}  // namespace softneuro
