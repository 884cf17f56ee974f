// Convolution on channels-last blobs as a matrix product whose left rows are found through tables.
#include <algorithm>
#include <vector>

#include "kernels/conv_indirect/conv_indirect.h"
#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

SN_PARAMS(IndirectParams, panel, pixels, taps, split);

ConvIndirectArgs kernel_args(const Conv2dParams& p, const ConvIndirectKernels& kernels, const IndirectParams& params) {
  if (params.panel < 1 || params.panel > kernels.max_panel || params.pixels < 1 || params.taps < 1) {
    throw Error("panel must be in [1, " + std::to_string(kernels.max_panel) + "], pixels and taps positive");
  }
  ConvIndirectArgs args;
  args.in_channels = static_cast<int>(p.group_c());
  args.out_channels = static_cast<int>(p.group_k());
  args.kernel_h = static_cast<int>(p.kh);
  args.kernel_w = static_cast<int>(p.kw);
  args.out_w = static_cast<int>(p.ow);
  args.dst_stride = p.k;
  args.tiling = {params.panel, params.pixels, params.taps};
  return args;
}

// Where the taps of each output coordinate along one axis are, in floats.
std::vector<ptrdiff_t> tap_table(int64_t out, int64_t in, int64_t taps, int64_t stride, int64_t dilation, int64_t pad,
                                 int64_t step) {
  std::vector<ptrdiff_t> table(static_cast<size_t>(out * taps));
  auto* entry = table.data();
  for (int64_t i = 0; i < out; ++i) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t at = i * stride + tap * dilation - pad;
      *entry++ = at >= 0 && at < in ? at * step : conv_indirect_outside;
    }
  }
  return table;
}

// Narrower groups waste most of a vector.
constexpr int64_t least_group = 8;

class PreparedIndirect final : public PreparedSplit {
 public:
  PreparedIndirect(const Problem& problem, const ConvIndirectKernels& kernels, const IndirectParams& params,
                   std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        kernels_(kernels),
        p_(conv2d_params(problem)),
        args_(kernel_args(p_, kernels, params)),
        group_weights_(conv_indirect_packed_size(args_, kernels.lanes)) {
    args_.weights = packed_->at<float>("weights");
    args_.epilogue.activation = problem.layer->post.activation;
    bias_ = packed_->find<float>("bias");
    if (p_.empty()) return;
    rows_ = tap_table(p_.oh, p_.h, p_.kh, p_.sh, p_.dh, p_.pt, p_.w * p_.c);
    columns_ = tap_table(p_.ow, p_.w, p_.kw, p_.sw, p_.dw, p_.pl, p_.c);
    zeros_.assign(static_cast<size_t>(p_.group_c()), 0.0f);
    args_.rows = rows_.data();
    args_.columns = columns_.data();
    args_.zeros = zeros_.data();
    const int64_t width = kernels.lanes * args_.tiling.panel;
    split_ = WorkSplit(p_.n * p_.groups, ceil_div(p_.group_k(), width), p_.oh * p_.ow,
                       worth_threads(p_, problem.threads), parse_split(params.split));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t index, Range panels, Range pixels, std::byte*) {
      const int64_t image = index / p_.groups, group = index % p_.groups, channel = group * p_.group_k();
      ConvIndirectArgs call = args_;
      call.src = input_image(args, 0, image) + group * p_.group_c();
      call.weights += group * group_weights_;
      call.dst = output_image(args, image) + channel;
      if (bias_ != nullptr) call.epilogue.bias = bias_ + channel;
      if (residual_) call.epilogue.residual = input_image(args, 1, image) + channel;
      kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(pixels.begin),
                   static_cast<int>(pixels.end));
    });
  }

 private:
  const ConvIndirectKernels& kernels_;
  Conv2dParams p_;
  ConvIndirectArgs args_;
  size_t group_weights_;  // floats
  const float* bias_ = nullptr;
  std::vector<ptrdiff_t> rows_, columns_;
  std::vector<float> zeros_;
};

class IndirectGemmConv2d final : public Routine {
 public:
  explicit IndirectGemmConv2d(Isa isa)
      : Routine({.layer_type = "conv2d", .algorithm = "indirect_gemm", .isa = isa, .in = f32_nhwc, .out = f32_nhwc}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (p.pointwise()) return "a 1x1 kernel is the gemm routine's";
    if (p.groups > 1 && p.group_k() < least_group) return "groups of few output channels";
    return check_int_sizes(p);
  }

  std::vector<std::string> param_names() const override { return IndirectParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int64_t l2 = l2_bytes();
    // What a block of pixels reads should stay in L2 while every panel passes over it, beside the panel's weights.
    // Whole tiles of any panel: 126 is a multiple of 6, 9 and 14.
    const int64_t each = std::min(p.sh, p.kh) * std::min(p.sw, p.kw) * p.group_c() * 4;
    const int64_t fit = std::max<int64_t>(l2 / 2 / std::max<int64_t>(each, 1) / 126 * 126, 126);
    const int pixels = static_cast<int>(std::min(fit, std::max<int64_t>(p.oh * p.ow, 1)));
    const int vectors = static_cast<int>((p.group_k() + kernels().lanes - 1) / kernels().lanes);
    const int wide = std::min(kernels().max_panel, vectors);
    const int split = likely_split(p.oh * p.ow);
    const auto params = [&](int panel, int by) {
      // Equal blocks of taps whose weights leave L2 room for the next ones.
      const int64_t tap = panel * kernels().lanes * p.group_c() * 4, all = p.kh * p.kw;
      const int64_t blocks = (all * tap + l2 * 3 / 8 - 1) / (l2 * 3 / 8),
                    taps = (all + blocks - 1) / std::max<int64_t>(blocks, 1);
      return IndirectParams{panel, pixels, static_cast<int>(std::max<int64_t>(taps, 1)), by};
    };
    std::vector<Tuning> list{params(wide, split)};
    if (vectors > wide && vectors % wide != 0) list.push_back(params(wide - 1, split));
    if (problem.threads > 1) list.push_back(params(wide, 1 - split));
    return list;
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "panel " + std::to_string(IndirectParams::of(tuning).panel);
  }
  // Weights by group.
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const Conv2dParams p = conv2d_params(problem);
    const ConvIndirectArgs args = kernel_args(p, kernels(), IndirectParams::of(tuning));
    Packing packing;
    packing.add("weights", p.groups * conv_indirect_packed_size(args, kernels().lanes), DType::float32,
                problem.layer->weight("weight")->elements());
    add_bias(packing, *problem.layer, p.k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const Conv2dParams p = conv2d_params(problem);
    const ConvIndirectArgs args = kernel_args(p, kernels(), IndirectParams::of(tuning));
    const size_t size = conv_indirect_packed_size(args, kernels().lanes);
    const auto weight = problem.layer->weight("weight")->values();
    for (int64_t group = 0; group < p.groups; ++group) {
      conv_indirect_pack(args, kernels().lanes, weight.get() + group * p.group_k() * p.group_c() * p.kh * p.kw,
                         to.at<float>("weights") + static_cast<size_t>(group) * size);
    }
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedIndirect>(problem, kernels(), IndirectParams::of(tuning), std::move(packed));
  }

 private:
  const ConvIndirectKernels& kernels() const { return *conv_indirect_kernels(info().isa); }
};

}  // namespace

void conv2d_indirect_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<IndirectGemmConv2d>(isa);
}

}  // namespace softneuro
