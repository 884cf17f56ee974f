// Convolution on row-major blobs as weights x patches, a strip of patches at a time so that they stay in L2.
#include <algorithm>

#include "layers/conv2d/im2col.h"
#include "layers/conv2d/shapes.h"
#include "layers/products/gemm_tasks.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

class PreparedIm2col final : public PreparedSplit {
 public:
  PreparedIm2col(const Problem& problem, const GemmKernels& kernels, const GemmStripParams& params,
                 std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        kernels_(kernels),
        p_(conv2d_params(problem)),
        strip_(params.columns) {
    const int64_t depth = p_.group_c() * p_.kh * p_.kw;
    gemm_.k = static_cast<int>(depth);
    gemm_.m = static_cast<int>(p_.group_k());
    gemm_.tiling = gemm_tiling(kernels, params.panel);
    gemm_.a_stride = depth;
    gemm_.dst_stride = p_.oh * p_.ow;
    gemm_.bias_per_row = true;
    gemm_.epilogue.activation = problem.layer->post.activation;
    weights_ = packed_->at<float>("weights");
    bias_ = packed_->find<float>("bias");
    if (p_.empty()) return;

    // Whole vectors of columns and small blocks of channels are what is dealt.
    const int64_t vectors = ceil_div(p_.oh * p_.ow, kernels.lanes);
    split_ = WorkSplit(p_.n * p_.groups, ceil_div(p_.group_k(), channel_block), vectors, problem.threads,
                       parse_split(params.split));
    columns_ =
        round_to_line(static_cast<size_t>(std::min<int64_t>(strip_, vectors * kernels.lanes) * depth) * sizeof(float));
    scratch_ = columns_ + round_to_line(kernels.scratch_bytes(gemm_.m, gemm_.k, gemm_.tiling));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t index, Range blocks, Range vectors, std::byte* scratch) {
      const int64_t end = std::min(vectors.end * kernels_.lanes, p_.oh * p_.ow);
      for (int64_t begin = vectors.begin * kernels_.lanes; begin < end; begin += strip_) {
        run_strip(args, index / p_.groups, index % p_.groups, blocks, {begin, std::min(begin + strip_, end)}, scratch);
      }
    });
  }

 private:
  static constexpr int64_t channel_block = 8;

  void run_strip(const RunArgs& args, int64_t image, int64_t group, Range blocks, Range strip,
                 std::byte* scratch) const {
    GemmArgs call = gemm_;
    call.n = static_cast<int>(strip.end - strip.begin);
    const int panels = gemm_panels(call.n, kernels_.lanes, call.tiling.panel);
    auto* columns = reinterpret_cast<float*>(scratch);
    const float* src = input_image(args, 0, image) + group * p_.group_c() * p_.h * p_.w;
    if (p_.pointwise() && p_.sh == 1 && p_.sw == 1) {
      kernels_.pack_b(call.n, call.k, call.tiling.panel, src + strip.begin, p_.h * p_.w, false, 0, panels, columns);
    } else {
      im2col_panels(p_, src, strip.begin, strip.end, kernels_.lanes, call.tiling.panel, columns);
    }
    const int64_t channel = group * p_.group_k(), at = channel * p_.oh * p_.ow + strip.begin;
    call.a = weights_ + channel * call.k;
    call.b = columns;
    call.dst = output_image(args, image) + at;
    if (bias_ != nullptr) call.epilogue.bias = bias_ + channel;
    if (residual_) call.epilogue.residual = input_image(args, 1, image) + at;
    kernels_.run(call, 0, panels, static_cast<int>(blocks.begin * channel_block),
                 static_cast<int>(std::min(blocks.end * channel_block, p_.group_k())), scratch + columns_);
  }

  const GemmKernels& kernels_;
  Conv2dParams p_;
  int64_t strip_;  // columns
  GemmArgs gemm_;
  const float* weights_ = nullptr;
  const float* bias_ = nullptr;
  size_t columns_ = 0;  // bytes of a task
};

class Im2colGemmConv2d final : public Routine {
 public:
  explicit Im2colGemmConv2d(Isa isa)
      : Routine({.layer_type = "conv2d", .algorithm = "im2col_gemm", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const Refusal sizes = check_gemm_sizes(p.group_k(), p.oh * p.ow, p.group_c() * p.kh * p.kw);
    return sizes.accepted() ? check_int_sizes(p) : sizes;
  }

  std::vector<std::string> param_names() const override { return GemmStripParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int64_t budget = l2_bytes() / 2;
    const int64_t fit = budget / (p.group_c() * p.kh * p.kw * 4) / gemm_strip * gemm_strip;
    const int strip = static_cast<int>(std::clamp<int64_t>(fit, gemm_strip, 10 * gemm_strip));
    return gemm_strip_choices(strip, 0, problem.threads);
  }

  // Row-major weights as they are.
  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing;
    packing.add("weights", problem.layer->weight("weight")->elements());
    add_bias(packing, *problem.layer, conv2d_params(problem).k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    pack_padded(&problem.layer->weight("weight"), to, "weights");
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedIm2col>(problem, *gemm_kernels(info().isa), checked_strip(tuning),
                                            std::move(packed));
  }
};

}  // namespace

void conv2d_im2col_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<Im2colGemmConv2d>(isa);
}

}  // namespace softneuro
