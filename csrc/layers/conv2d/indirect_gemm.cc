// Convolution on channels-last blobs as a matrix product whose left rows are found through tables.
#include <algorithm>
#include <vector>

#include "kernels/conv_indirect/conv_indirect.h"
#include "layers/conv2d/blocked.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

ConvIndirectArgs kernel_args(const Conv2dParams& p, const ConvIndirectKernels& kernels, const Tuning& tuning) {
  if (tuning[0] < 1 || tuning[0] > kernels.max_panel || tuning[1] < 1 || tuning[2] < 1) {
    throw Error("panel must be in [1, " + std::to_string(kernels.max_panel) + "], pixels and taps positive");
  }
  ConvIndirectArgs args;
  args.in_channels = static_cast<int>(p.group_c());
  args.out_channels = static_cast<int>(p.group_k());
  args.kernel_h = static_cast<int>(p.kh);
  args.kernel_w = static_cast<int>(p.kw);
  args.out_w = static_cast<int>(p.ow);
  args.dst_stride = p.k;
  args.tiling = {tuning[0], tuning[1], tuning[2]};
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

class PreparedIndirect final : public Prepared {
 public:
  PreparedIndirect(const Problem& problem, const ConvIndirectKernels& kernels, const Tuning& tuning,
                   std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)),
        kernels_(kernels),
        p_(conv2d_params(problem)),
        residual_(problem.layer->post.residual),
        args_(kernel_args(p_, kernels, tuning)),
        group_weights_(conv_indirect_packed_size(args_, kernels.lanes)) {
    args_.weights = packed_floats(packed_.get());
    args_.epilogue.activation = problem.layer->post.activation;
    if (problem.layer->find_weight("bias") != nullptr) bias_ = args_.weights + p_.groups * group_weights_;
    if (p_.empty()) return;
    rows_ = tap_table(p_.oh, p_.h, p_.kh, p_.sh, p_.dh, p_.pt, p_.w * p_.c);
    columns_ = tap_table(p_.ow, p_.w, p_.kw, p_.sw, p_.dw, p_.pl, p_.c);
    zeros_.assign(static_cast<size_t>(p_.group_c()), 0.0f);
    args_.rows = rows_.data();
    args_.columns = columns_.data();
    args_.zeros = zeros_.data();
    const int64_t width = kernels.lanes * args_.tiling.panel;
    split_ = WorkSplit(p_.n * p_.groups, (p_.group_k() + width - 1) / width, p_.oh * p_.ow,
                       worth_threads(p_, problem.threads), parse_split(tuning[3]));
  }

  void run(const RunArgs& args) const override {
    args.parallel_for(split_.tasks, [&](int64_t task) {
      split_.for_task(task, [&](int64_t index, Range panels, Range pixels) {
        const int64_t image = index / p_.groups, group = index % p_.groups, channel = group * p_.group_k();
        ConvIndirectArgs call = args_;
        call.src = args.in[0].f32() + image * args.in[0].strides[0] + group * p_.group_c();
        call.weights += group * group_weights_;
        call.dst = args.out.f32() + image * args.out.strides[0] + channel;
        if (bias_ != nullptr) call.epilogue.bias = bias_ + channel;
        if (residual_) call.epilogue.residual = args.in[1].f32() + image * args.in[1].strides[0] + channel;
        kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(pixels.begin),
                     static_cast<int>(pixels.end));
      });
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  const ConvIndirectKernels& kernels_;
  Conv2dParams p_;
  bool residual_;
  ConvIndirectArgs args_;
  size_t group_weights_;  // floats
  const float* bias_ = nullptr;
  std::vector<ptrdiff_t> rows_, columns_;
  std::vector<float> zeros_;
  WorkSplit split_;
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

  std::vector<std::string> param_names() const override { return {"panel", "pixels", "taps", "split"}; }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int64_t l2 = static_cast<int64_t>(std::max<size_t>(caches().l2, 256 << 10));
    // What a block of pixels reads should stay in L2 while every panel passes over it, beside the panel's weights.
    // Whole tiles of any panel: 126 is a multiple of 6, 9 and 14.
    const int64_t each = std::min(p.sh, p.kh) * std::min(p.sw, p.kw) * p.group_c() * 4;
    const int64_t fit = std::max<int64_t>(l2 / 2 / std::max<int64_t>(each, 1) / 126 * 126, 126);
    const int pixels = static_cast<int>(std::min(fit, std::max<int64_t>(p.oh * p.ow, 1)));
    const int vectors = static_cast<int>((p.group_k() + kernels().lanes - 1) / kernels().lanes);
    const int wide = std::min(kernels().max_panel, vectors);
    // Small maps are bound by weights, which splitting by panels reads once.
    const SplitBy split = p.oh * p.ow >= 28 * 28 ? SplitBy::rows : SplitBy::panels;
    const auto tuning = [&](int panel, SplitBy by) {
      // Equal blocks of taps whose weights leave L2 room for the next ones.
      const int64_t tap = panel * kernels().lanes * p.group_c() * 4, all = p.kh * p.kw;
      const int64_t blocks = (all * tap + l2 * 3 / 8 - 1) / (l2 * 3 / 8),
                    taps = (all + blocks - 1) / std::max<int64_t>(blocks, 1);
      return Tuning{panel, pixels, static_cast<int>(std::max<int64_t>(taps, 1)), static_cast<int>(by)};
    };
    std::vector<Tuning> list{tuning(wide, split)};
    if (vectors > wide && vectors % wide != 0) list.push_back(tuning(wide - 1, split));
    if (problem.threads > 1) list.push_back(tuning(wide, split == SplitBy::rows ? SplitBy::panels : SplitBy::rows));
    return list;
  }

  size_t packed_bytes(const Problem& problem, const Tuning& tuning) const override {
    const Conv2dParams p = conv2d_params(problem);
    const size_t weights = conv_indirect_packed_size(kernel_args(p, kernels(), tuning), kernels().lanes);
    const int64_t biases = problem.layer->find_weight("bias") != nullptr ? p.k : 0;
    return (static_cast<size_t>(p.groups) * weights + static_cast<size_t>(biases)) * sizeof(float);
  }
  // By group as the kernel wants it, then the bias.
  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "panel " + std::to_string(tuning[0]);
  }
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const override {
    const Conv2dParams p = conv2d_params(problem);
    const ConvIndirectArgs args = kernel_args(p, kernels(), tuning);
    const auto size = static_cast<int64_t>(conv_indirect_packed_size(args, kernels().lanes));
    const Constant* bias = problem.layer->find_weight("bias");
    auto packed = std::make_shared<PackedFloats>(p.groups * size + (bias != nullptr ? p.k : 0));
    const auto weight = problem.layer->weight("weight")->values();
    for (int64_t group = 0; group < p.groups; ++group) {
      conv_indirect_pack(args, kernels().lanes, weight.get() + group * p.group_k() * p.group_c() * p.kh * p.kw,
                         packed->data() + group * size);
    }
    if (bias != nullptr) std::copy_n((*bias)->values().get(), p.k, packed->data() + p.groups * size);
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedIndirect>(problem, kernels(), tuning, std::move(packed));
  }

 private:
  const ConvIndirectKernels& kernels() const { return *conv_indirect_kernels(info().isa); }
};

}  // namespace

void conv2d_indirect_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<IndirectGemmConv2d>(isa);
}

}  // namespace softneuro
