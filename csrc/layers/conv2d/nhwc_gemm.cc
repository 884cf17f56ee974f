// 1x1 convolution on channels-last blobs: pixels x weights. Strided pixels are gathered first.
#include <algorithm>

#include "layers/conv2d/shapes.h"
#include "layers/products/gemm_tasks.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

constexpr int gather_rows = 112;  // pixels: the kernel's row block

SN_PARAMS(NhwcGemmParams, panel, split);

class PreparedNhwcGemm final : public PreparedSplit {
 public:
  PreparedNhwcGemm(const Problem& problem, const GemmKernels& kernels, const NhwcGemmParams& params,
                   std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        kernels_(kernels),
        p_(conv2d_params(problem)),
        strided_(p_.sh != 1 || p_.sw != 1) {
    gemm_.m = static_cast<int>(p_.oh * p_.ow);
    gemm_.n = static_cast<int>(p_.group_k());
    gemm_.k = static_cast<int>(p_.group_c());
    gemm_.tiling = gemm_tiling(kernels, params.panel);
    gemm_.a_stride = strided_ ? p_.group_c() : p_.c;
    gemm_.dst_stride = p_.k;
    gemm_.epilogue.activation = problem.layer->post.activation;
    weights_ = packed_->at<float>("weights");
    bias_ = packed_->find<float>("bias");
    group_weights_ = gemm_packed_size(gemm_.n, gemm_.k, kernels.lanes);
    if (p_.empty()) return;
    const SplitBy by = parse_split(params.split);
    split_ = WorkSplit(p_.n * p_.groups, gemm_panels(gemm_.n, kernels.lanes, gemm_.tiling.panel), gemm_.m,
                       worth_threads(p_, problem.threads), by, by == SplitBy::panels ? 1 : 0);
    gathered_ = strided_ ? round_to_line(gather_rows * static_cast<size_t>(gemm_.k) * sizeof(float)) : 0;
    scratch_ = gathered_ + round_to_line(kernels.scratch_bytes(gemm_.m, gemm_.k, gemm_.tiling));
  }

  // Partial sums would overwrite it.
  bool works_on_residual() const override { return gemm_.k <= gemm_.tiling.k_block; }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t index, Range panels, Range pixels, std::byte* scratch) {
      const int64_t step = strided_ ? gather_rows : pixels.end - pixels.begin;
      for (int64_t begin = pixels.begin; begin < pixels.end; begin += step) {
        run_rows(args, index / p_.groups, index % p_.groups, panels, {begin, std::min(begin + step, pixels.end)},
                 scratch);
      }
    });
  }

 private:
  void run_rows(const RunArgs& args, int64_t image, int64_t group, Range panels, Range pixels,
                std::byte* scratch) const {
    const float* src = input_image(args, 0, image) + group * p_.group_c();
    const int64_t at = pixels.begin * p_.k + group * p_.group_k();
    GemmArgs call = gemm_;
    call.m = static_cast<int>(pixels.end - pixels.begin);
    call.a = src + pixels.begin * p_.c;
    if (strided_) {
      auto* rows = reinterpret_cast<float*>(scratch);
      for (int64_t pixel = pixels.begin; pixel < pixels.end; ++pixel) {
        const int64_t y = pixel / p_.ow * p_.sh, x = pixel % p_.ow * p_.sw;
        std::copy_n(src + (y * p_.w + x) * p_.c, call.k, rows + (pixel - pixels.begin) * call.k);
      }
      call.a = rows;
    }
    call.b = weights_ + group * group_weights_;
    call.dst = output_image(args, image) + at;
    if (bias_ != nullptr) call.epilogue.bias = bias_ + group * p_.group_k();
    if (residual_) call.epilogue.residual = input_image(args, 1, image) + at;
    kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), 0, call.m, scratch + gathered_);
  }

  const GemmKernels& kernels_;
  Conv2dParams p_;
  bool strided_;
  GemmArgs gemm_;
  const float* weights_ = nullptr;
  const float* bias_ = nullptr;
  int64_t group_weights_ = 0;  // floats
  size_t gathered_ = 0;        // bytes of a task
};

class NhwcGemmConv2d final : public Routine {
 public:
  explicit NhwcGemmConv2d(Isa isa)
      : Routine({.layer_type = "conv2d", .algorithm = "gemm", .isa = isa, .in = f32_nhwc, .out = f32_nhwc}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (!p.pointwise()) return "not a 1x1 kernel without padding";
    const Refusal sizes = check_gemm_sizes(p.group_k(), p.oh * p.ow, p.group_c());
    return sizes.accepted() ? check_int_sizes(p) : sizes;
  }

  std::vector<std::string> param_names() const override { return NhwcGemmParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int split = likely_split(p.oh * p.ow);
    std::vector<Tuning> list{NhwcGemmParams{2, split}, NhwcGemmParams{3, split}};
    if (problem.threads > 1) list.push_back(NhwcGemmParams{2, 1 - split});
    return list;
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "panel " + std::to_string(NhwcGemmParams::of(tuning).panel);
  }
  // Weights by group.
  Packing packing(const Problem& problem, const Tuning&) const override {
    const Conv2dParams p = conv2d_params(problem);
    Packing packing;
    packing.add("weights", p.groups * group_size(p), DType::float32, p.k * p.group_c());
    add_bias(packing, *problem.layer, p.k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const Conv2dParams p = conv2d_params(problem);
    const GemmKernels& kernels = *gemm_kernels(info().isa);
    const int n = narrow(p.group_k()), k = narrow(p.group_c());
    const int panel = gemm_tiling(kernels, NhwcGemmParams::of(tuning).panel).panel;
    const auto weight = problem.layer->weight("weight")->values();
    for (int64_t group = 0; group < p.groups; ++group) {
      kernels.pack_b(n, k, panel, weight.get() + group * n * k, k, true, 0, gemm_panels(n, kernels.lanes, panel),
                     to.at<float>("weights") + group * group_size(p));
    }
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedNhwcGemm>(problem, *gemm_kernels(info().isa), NhwcGemmParams::of(tuning),
                                              std::move(packed));
  }

 private:
  int64_t group_size(const Conv2dParams& p) const {
    const size_t size = gemm_packed_size(narrow(p.group_k()), narrow(p.group_c()), gemm_kernels(info().isa)->lanes);
    return static_cast<int64_t>(size);
  }
};

}  // namespace

void conv2d_nhwc_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<NhwcGemmConv2d>(isa);
}

}  // namespace softneuro
