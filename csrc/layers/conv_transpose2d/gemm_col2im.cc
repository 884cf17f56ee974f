// Transposed convolution as a product of weights and pixels, whose columns are then added where their taps reach.
#include <algorithm>

#include "kernels/activate/activate.h"
#include "layers/conv_transpose2d/col2im.h"
#include "layers/products/gemm_tasks.h"
#include "layers/shared/images.h"
#include "layers/shared/split.h"

namespace softneuro {
namespace {

SN_PARAMS(GemmCol2imParams, panel);

class PreparedGemmCol2im final : public PreparedSplit {
 public:
  PreparedGemmCol2im(const Problem& problem, const GemmKernels& kernels, ActivateKernel activate,
                     const GemmCol2imParams& params, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        kernels_(kernels),
        activate_(activate),
        p_(conv_transpose2d_params(problem)),
        post_(problem.layer->post) {
    const int64_t l2 = l2_bytes();
    taps_ = p_.kh * p_.kw;
    weights_ = packed_->at<float>("weights");
    bias_ = packed_->find<float>("bias");
    if (problem.out().shape.elements() == 0) return;

    // A strip of pixels stays in L2, and so do the products of a few output channels with it.
    strip_rows_ = std::clamp<int64_t>(l2 / 4 / (p_.w * p_.group_c() * 4), 1, p_.h);
    const int64_t pixels = strip_rows_ * p_.w, padded = round_up(pixels, kernels.lanes);
    chunk_ = std::clamp<int64_t>(l2 / 4 / (taps_ * pixels * 4), 1, p_.group_k());
    gemm_.m = static_cast<int>(chunk_ * taps_);
    gemm_.k = static_cast<int>(p_.group_c());
    gemm_.tiling = gemm_tiling(kernels, params.panel);
    gemm_.a_stride = p_.group_c();
    split_ = WorkSplit(p_.n * p_.groups, p_.group_k(), 1, problem.threads, SplitBy::panels);
    pixels_bytes_ = round_to_line(static_cast<size_t>(padded * p_.group_c()) * sizeof(float));
    products_bytes_ = round_to_line(static_cast<size_t>(chunk_ * taps_ * pixels) * sizeof(float));
    scratch_ = pixels_bytes_ + products_bytes_ + round_to_line(kernels.scratch_bytes(gemm_.m, gemm_.k, gemm_.tiling));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t index, Range channels, Range, std::byte* scratch) {
      run_channels(args, index / p_.groups, index % p_.groups, channels, scratch);
    });
  }

 private:
  // Output channels of one group of one image.
  void run_channels(const RunArgs& args, int64_t image, int64_t group, Range channels, std::byte* scratch) const {
    auto* pixels = reinterpret_cast<float*>(scratch);
    auto* products = reinterpret_cast<float*>(scratch + pixels_bytes_);
    const float* src = input_image(args, 0, image) + group * p_.group_c() * p_.h * p_.w;
    const int64_t plane = p_.oh * p_.ow, first = (group * p_.group_k() + channels.begin) * plane;
    float* dst = output_image(args, image) + first;
    for (int64_t k = channels.begin; k < channels.end; ++k) {
      float* start = dst + (k - channels.begin) * plane;
      std::fill(start, start + plane, bias_ != nullptr ? bias_[group * p_.group_k() + k] : 0.f);
    }
    for (int64_t row = 0; row < p_.h; row += strip_rows_) {
      const int64_t row_end = std::min(row + strip_rows_, p_.h);
      GemmArgs call = gemm_;
      call.n = static_cast<int>((row_end - row) * p_.w);
      call.b = pixels;
      call.dst = products;
      call.dst_stride = call.n;
      const int panels = gemm_panels(call.n, kernels_.lanes, call.tiling.panel);
      kernels_.pack_b(call.n, call.k, call.tiling.panel, src + row * p_.w, p_.h * p_.w, false, 0, panels, pixels);
      for (int64_t k = channels.begin; k < channels.end; k += chunk_) {
        const int64_t end = std::min(k + chunk_, channels.end);
        call.m = static_cast<int>((end - k) * taps_);
        call.a = weights_ + (group * p_.group_k() + k) * taps_ * p_.group_c();
        kernels_.run(call, 0, panels, 0, call.m, scratch + pixels_bytes_ + products_bytes_);
        for (int64_t i = k; i < end; ++i) {
          col2im_add(p_, products + (i - k) * taps_ * call.n, call.n, row, row_end, dst + (i - channels.begin) * plane);
        }
      }
    }
    if (post_.empty()) return;
    const float* residual = post_.residual ? input_image(args, 1, image) + first : nullptr;
    activate_(dst, dst, residual, (channels.end - channels.begin) * plane, post_.activation, nullptr);
  }

  const GemmKernels& kernels_;
  ActivateKernel activate_;
  ConvTranspose2dParams p_;
  PostOps post_;
  GemmArgs gemm_;
  const float* weights_ = nullptr;
  const float* bias_ = nullptr;
  int64_t taps_ = 1, strip_rows_ = 1, chunk_ = 1;
  size_t pixels_bytes_ = 0, products_bytes_ = 0;  // of a task
};

class GemmCol2im final : public Routine {
 public:
  explicit GemmCol2im(Isa isa)
      : Routine({.layer_type = "conv_transpose2d",
                 .algorithm = "gemm_col2im",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    const ConvTranspose2dParams p = conv_transpose2d_params(problem);
    return check_gemm_sizes(p.group_k() * p.kh * p.kw, p.h * p.w, p.group_c());
  }

  std::vector<std::string> param_names() const override { return GemmCol2imParams::names(); }
  std::vector<Tuning> tunings(const Problem&) const override { return {GemmCol2imParams{2}, GemmCol2imParams{3}}; }

  // Weights by group: [output channel][tap][input channel].
  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing;
    packing.add("weights", problem.layer->weight("weight")->elements());
    add_bias(packing, *problem.layer, conv_transpose2d_params(problem).k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const ConvTranspose2dParams p = conv_transpose2d_params(problem);
    const auto values = problem.layer->weight("weight")->values();
    const int64_t rows = p.group_k() * p.kh * p.kw;
    for (int64_t c = 0; c < p.c; ++c) {
      const int64_t group = c / p.group_c(), lane = c % p.group_c();
      float* weights = to.at<float>("weights") + group * rows * p.group_c() + lane;
      for (int64_t row = 0; row < rows; ++row) weights[row * p.group_c()] = values.get()[c * rows + row];
    }
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedGemmCol2im>(problem, *gemm_kernels(info().isa), activate_kernel(info().isa),
                                                GemmCol2imParams::of(tuning), std::move(packed));
  }
};

}  // namespace

void conv_transpose2d_gemm_col2im(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<GemmCol2im>(isa);
}

}  // namespace softneuro
