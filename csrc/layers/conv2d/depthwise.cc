// Depthwise convolution (one filter per channel) on nchw{c}c blobs.
#include "layers/conv2d/depthwise.h"

#include <algorithm>

#include "layers/conv2d/blocked.h"
#include "layers/packed_floats.h"

namespace softneuro {

ConvDepthwiseArgs depthwise_args(const Conv2dParams& p, const Layer& layer, const float* weights, const float* bias) {
  const ConvDirectShape shape = direct_shape(p);
  return {.channels = static_cast<int>(p.c),
          .h = shape.h,
          .w = shape.w,
          .out_h = shape.out_h,
          .out_w = shape.out_w,
          .kernel_h = shape.kernel_h,
          .kernel_w = shape.kernel_w,
          .stride_h = shape.stride_h,
          .stride_w = shape.stride_w,
          .dilation_h = shape.dilation_h,
          .dilation_w = shape.dilation_w,
          .pad_top = shape.pad_top,
          .pad_left = shape.pad_left,
          .weights = weights,
          .epilogue = {.bias = bias, .activation = layer.post.activation}};
}

namespace {

class PreparedDepthwise final : public Prepared {
 public:
  PreparedDepthwise(const Problem& problem, const ConvDepthwiseKernels& kernels, SplitBy by,
                    std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), run_(kernels.run), residual_(problem.layer->post.residual) {
    const Conv2dParams p = conv2d_params(problem);
    args_ = depthwise_args(p, *problem.layer, packed_floats(packed_.get()), nullptr);
    if (problem.layer->find_weight("bias") != nullptr) {
      args_.epilogue.bias =
          args_.weights + conv_depthwise_packed_size(args_.channels, args_.kernel_h, args_.kernel_w, kernels.block);
    }
    if (p.empty()) return;
    // In pairs of rows, which the kernel computes together.
    split_ = WorkSplit(p.n, (p.c + kernels.block - 1) / kernels.block, (p.oh + 1) / 2,
                       worth_threads(p, problem.threads), by, 1);
  }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      work.for_task(task, [&](int64_t image, Range blocks, Range pairs) {
        ConvDepthwiseArgs call = args_;
        call.src = args.in[0].f32() + image * args.in[0].strides[0];
        call.dst = args.out.f32() + image * args.out.strides[0];
        if (residual_) call.epilogue.residual = args.in[1].f32() + image * args.in[1].strides[0];
        run_(call, static_cast<int>(blocks.begin), static_cast<int>(blocks.end), static_cast<int>(2 * pairs.begin),
             std::min(static_cast<int>(2 * pairs.end), call.out_h));
      });
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  decltype(ConvDepthwiseKernels::run) run_;
  ConvDepthwiseArgs args_;
  WorkSplit split_;
  bool residual_;
};

class DepthwiseConv2d final : public Routine {
 public:
  explicit DepthwiseConv2d(Isa isa)
      : Routine({.layer_type = "conv2d",
                 .algorithm = "depthwise",
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa))}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return p.depthwise() ? check_int_sizes(p) : Refusal("not one filter per channel");
  }

  std::vector<std::string> param_names() const override { return {"split"}; }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    if (problem.threads == 1) return {{static_cast<int>(SplitBy::panels)}};
    return {{static_cast<int>(SplitBy::panels)}, {static_cast<int>(SplitBy::rows)}};
  }

  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning&) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int block = info().in.layout.block, channels = static_cast<int>(p.c);
    const int kh = static_cast<int>(p.kh), kw = static_cast<int>(p.kw);
    const auto size = static_cast<int64_t>(conv_depthwise_packed_size(channels, kh, kw, block));
    const Constant* bias = problem.layer->find_weight("bias");
    const int64_t biases = bias != nullptr ? (p.c + block - 1) / block * block : 0;
    auto packed = std::make_shared<PackedFloats>(size + biases);
    conv_depthwise_pack(channels, kh, kw, block, problem.layer->weight("weight")->values().get(), packed->data());
    if (bias != nullptr) {
      std::fill_n(packed->data() + size, biases, 0.f);
      std::copy_n((*bias)->values().get(), p.c, packed->data() + size);
    }
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedDepthwise>(problem, *conv_depthwise_kernels(info().isa), parse_split(tuning[0]),
                                               std::move(packed));
  }
};

}  // namespace

void conv2d_depthwise(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DepthwiseConv2d>(isa);
}

}  // namespace softneuro
