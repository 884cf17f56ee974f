// The first convolution of a net: few channels, row-major in, nchw{c}c out.
#include <algorithm>

#include "kernels/conv_first/conv_first.h"
#include "layers/conv2d/blocked.h"
#include "layers/gemm_tasks.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

constexpr int64_t max_channels = 4;

ConvFirstArgs first_args(const Conv2dParams& p) {
  const ConvDirectShape shape = direct_shape(p);
  ConvFirstArgs args;
  args.in_channels = shape.in_channels;
  args.out_channels = shape.out_channels;
  args.h = shape.h;
  args.w = shape.w;
  args.out_h = shape.out_h;
  args.out_w = shape.out_w;
  args.kernel_h = shape.kernel_h;
  args.kernel_w = shape.kernel_w;
  args.stride_h = shape.stride_h;
  args.stride_w = shape.stride_w;
  args.dilation_h = shape.dilation_h;
  args.dilation_w = shape.dilation_w;
  args.pad_top = shape.pad_top;
  args.pad_left = shape.pad_left;
  return args;
}

class PreparedFirst final : public Prepared {
 public:
  PreparedFirst(const Problem& problem, const ConvFirstKernels& kernels, int row_block,
                std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), run_(kernels.run), residual_(problem.layer->post.residual) {
    const Conv2dParams p = conv2d_params(problem);
    args_ = first_args(p);
    args_.row_block = row_block;
    args_.weights = packed_floats(packed_.get());
    args_.epilogue.activation = problem.layer->post.activation;
    if (problem.layer->find_weight("bias") != nullptr) {
      args_.epilogue.bias = args_.weights + conv_first_packed_size(args_, kernels.block);
    }
    if (p.empty()) return;
    split_ = WorkSplit(p.n, 1, p.oh, worth_threads(p, problem.threads), SplitBy::rows);
    scratch_ = round_to_line(kernels.scratch_bytes(args_));
  }

  size_t workspace() const override { return scratch_ * static_cast<size_t>(split_.tasks); }

  void run(const RunArgs& args) const override {
    args.parallel_for(split_.tasks, [&](int64_t task) {
      split_.for_task(task, [&](int64_t image, Range, Range rows) {
        ConvFirstArgs call = args_;
        call.src = args.in[0].f32() + image * args.in[0].batch_stride;
        call.dst = args.out.f32() + image * args.out.batch_stride;
        if (residual_) call.epilogue.residual = args.in[1].f32() + image * args.in[1].batch_stride;
        run_(call, static_cast<int>(rows.begin), static_cast<int>(rows.end),
             args.workspace + static_cast<size_t>(task) * scratch_);
      });
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  decltype(ConvFirstKernels::run) run_;
  ConvFirstArgs args_;
  WorkSplit split_;
  bool residual_;
  size_t scratch_ = 0;  // bytes of a task
};

class FirstConv2d final : public Routine {
 public:
  explicit FirstConv2d(Isa isa)
      : Routine({.layer_type = "conv2d",
                 .algorithm = "first",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_blocked(isa_block(isa))}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (p.groups != 1) return "has groups";
    if (p.c > max_channels) return "has more than " + std::to_string(max_channels) + " input channels";
    return check_int_sizes(p);
  }

  std::vector<std::string> param_names() const override { return {"rows"}; }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    // The copied rows should stay in L2; fewer leave more of it to the output.
    const Conv2dParams p = conv2d_params(problem);
    const int64_t row = ((p.ow - 1) * p.sw + (p.kw - 1) * p.dw + 1) * p.c * 4;
    const auto fit = [&](size_t budget) {
      const int64_t rows = static_cast<int64_t>(budget) / row;
      return static_cast<int>(
          std::clamp<int64_t>((rows - (p.kh - 1) * p.dh - 1) / p.sh + 1, 1, std::max<int64_t>(p.oh, 1)));
    };
    const size_t l2 = std::max<size_t>(caches().l2, 256 << 10);
    const int large = fit(l2 / 4), small = fit(l2 / 16);
    if (small == large) return {{large}};
    return {{large}, {small}};
  }

  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning&) const override {
    const Conv2dParams p = conv2d_params(problem);
    const ConvFirstArgs args = first_args(p);
    const int block = info().out.layout.block;
    const auto size = static_cast<int64_t>(conv_first_packed_size(args, block));
    const Constant* bias = problem.layer->find_weight("bias");
    const int64_t biases = bias != nullptr ? (p.k + block - 1) / block * block : 0;
    auto packed = std::make_shared<PackedFloats>(size + biases);
    conv_first_pack(args, block, problem.layer->weight("weight")->values().get(), packed->data());
    if (bias != nullptr) {
      std::fill_n(packed->data() + size, biases, 0.f);
      std::copy_n((*bias)->values().get(), p.k, packed->data() + size);
    }
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    if (tuning[0] < 1) throw Error("rows must be positive, not " + std::to_string(tuning[0]));
    return std::make_unique<PreparedFirst>(problem, *conv_first_kernels(info().isa), tuning[0], std::move(packed));
  }
};

}  // namespace

void conv2d_first(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<FirstConv2d>(isa);
}

}  // namespace softneuro
