// Depthwise convolution (one filter per channel) on nchw{c}c blobs.
#include "layers/conv2d/depthwise.h"

#include <algorithm>

#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"
#include "layers/shared/images.h"

namespace softneuro {

Packing depthwise_packing(const Conv2dParams& p, const Layer& layer, int block, bool has_bias) {
  Packing packing;
  packing.add("weights", conv_depthwise_packed_size(narrow(p.c), narrow(p.kh), narrow(p.kw), block), DType::float32,
              layer.weight("weight")->elements());
  if (has_bias) add_padded(packing, "bias", layer.find_weight("bias"), round_up(p.c, block));
  return packing;
}

void pack_depthwise(const Conv2dParams& p, const Layer& layer, int block, Packed& to) {
  conv_depthwise_pack(narrow(p.c), narrow(p.kh), narrow(p.kw), block, layer.weight("weight")->values().get(),
                      to.at<float>("weights"));
  if (to.find<float>("bias") != nullptr) pack_padded(layer.find_weight("bias"), to, "bias");
}

ConvDepthwiseArgs depthwise_args(const Conv2dParams& p, const Layer& layer, const Packed& packed) {
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
          .weights = packed.at<float>("weights"),
          .epilogue = {.bias = packed.find<float>("bias"), .activation = layer.post.activation}};
}

namespace {

SN_PARAMS(DepthwiseParams, split);

class PreparedDepthwise final : public PreparedSplit {
 public:
  PreparedDepthwise(const Problem& problem, const ConvDepthwiseKernels& kernels, SplitBy by,
                    std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), run_(kernels.run) {
    const Conv2dParams p = conv2d_params(problem);
    args_ = depthwise_args(p, *problem.layer, *packed_);
    if (p.empty()) return;
    // The kernel computes pairs of rows together.
    split_ = WorkSplit(p.n, ceil_div(p.c, kernels.block), (p.oh + 1) / 2, worth_threads(p, problem.threads), by, 1);
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range blocks, Range pairs, std::byte*) {
      run_(for_image(args_, args, residual_, image), static_cast<int>(blocks.begin), static_cast<int>(blocks.end),
           static_cast<int>(2 * pairs.begin), std::min(static_cast<int>(2 * pairs.end), args_.out_h));
    });
  }

 private:
  decltype(ConvDepthwiseKernels::run) run_;
  ConvDepthwiseArgs args_;
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

  std::vector<std::string> param_names() const override { return DepthwiseParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const DepthwiseParams panels{static_cast<int>(SplitBy::panels)}, rows{static_cast<int>(SplitBy::rows)};
    if (problem.threads == 1) return {panels};
    return {panels, rows};
  }

  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  Packing packing(const Problem& problem, const Tuning&) const override {
    const Layer& layer = *problem.layer;
    return depthwise_packing(conv2d_params(problem), layer, block(), layer.find_weight("bias") != nullptr);
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    pack_depthwise(conv2d_params(problem), *problem.layer, block(), to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedDepthwise>(problem, *conv_depthwise_kernels(info().isa),
                                               parse_split(DepthwiseParams::of(tuning).split), std::move(packed));
  }

 private:
  int block() const { return info().in.layout.block; }
};

}  // namespace

void conv2d_depthwise(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DepthwiseConv2d>(isa);
}

}  // namespace softneuro
