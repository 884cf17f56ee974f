// kn2row: convolution to few channels as a 1x1 convolution to (tap, channel) pairs, whose rows are then shifted and
// summed (Vasudevan et al., "Parallel Multi Channel Convolution using General Matrix Multiplication"). The product's
// rows are as many as there are taps and channels, so that a handful of output channels still fills the kernel's tiles.
#include <algorithm>

#include "kernels/sum_rows/sum_rows.h"
#include "layers/conv2d/shapes.h"
#include "layers/products/gemm_tasks.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

constexpr int64_t most_outputs = 8, least_inputs = 8;

SN_PARAMS(Kn2rowParams, panel, rows);

class PreparedKn2row final : public PreparedSplit {
 public:
  PreparedKn2row(const Problem& problem, const GemmKernels& kernels, SumRowsKernel sum_rows, const Kn2rowParams& params,
                 std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        kernels_(kernels),
        sum_rows_(sum_rows),
        p_(conv2d_params(problem)),
        activation_(problem.layer->post.activation) {
    bias_ = packed_->find<float>("bias");
    gemm_.m = static_cast<int>(p_.kh * p_.kw * p_.k);
    gemm_.k = static_cast<int>(p_.c);
    gemm_.tiling = gemm_tiling(kernels, params.panel);
    gemm_.a = packed_->at<float>("weights");
    gemm_.a_stride = p_.c;
    if (p_.empty()) return;
    rows_ = std::min<int64_t>(params.rows, p_.h);
    strips_ = std::min((p_.kh - 1) * p_.dh / rows_ + 2, ceil_div(p_.h, rows_));
    stride_ = odd_lines(rows_ * p_.w);
    gemm_.dst_stride = stride_;
    split_ = WorkSplit(p_.n, 1, p_.oh, worth_threads(p_, problem.threads), SplitBy::rows);
    columns_ = round_to_line(static_cast<size_t>(p_.c * (stride_ + kernels.lanes)) * sizeof(float));
    products_ = round_to_line(static_cast<size_t>(gemm_.m * stride_ * strips_) * sizeof(float));
    taps_ = round_to_line(static_cast<size_t>(p_.kh * p_.kw) * sizeof(SumRow));
    scratch_ = columns_ + products_ + taps_ + round_to_line(kernels.scratch_bytes(gemm_.m, gemm_.k, gemm_.tiling));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args,
               [&](int64_t image, Range, Range rows, std::byte* scratch) { run_rows(args, image, rows, scratch); });
  }

 private:
  // Strips of input rows are multiplied in turn, into a ring; an output row is summed once its last input row is there.
  void run_rows(const RunArgs& args, int64_t image, Range rows, std::byte* scratch) const {
    const int64_t reach = (p_.kh - 1) * p_.dh - p_.pt;  // from an output row to its last input row
    const int64_t begin = std::clamp<int64_t>(rows.begin - p_.pt, 0, p_.h);
    const int64_t end = std::clamp<int64_t>(rows.end + reach, begin, p_.h);
    int64_t row = rows.begin;
    for (int64_t at = begin;;) {
      if (at < end) {
        const int64_t next = std::min(at + rows_, end);
        multiply(input_image(args, 0, image), {at, next}, product(scratch, (at - begin) / rows_), scratch);
        at = next;
      }
      for (; row < rows.end && (at == end || row + reach < at); ++row) sum(args, image, row, {begin, end}, scratch);
      if (at == end) return;
    }
  }

  float* product(std::byte* scratch, int64_t strip) const {
    return reinterpret_cast<float*>(scratch + columns_) + strip % strips_ * gemm_.m * stride_;
  }

  void multiply(const float* src, Range rows, float* dst, std::byte* scratch) const {
    auto* columns = reinterpret_cast<float*>(scratch);
    GemmArgs call = gemm_;
    call.n = static_cast<int>((rows.end - rows.begin) * p_.w);
    call.b = columns;
    call.dst = dst;
    const int panels = gemm_panels(call.n, kernels_.lanes, call.tiling.panel);
    kernels_.pack_b(call.n, call.k, call.tiling.panel, src + rows.begin * p_.w, p_.h * p_.w, false, 0, panels, columns);
    kernels_.run(call, 0, panels, 0, call.m, scratch + columns_ + products_ + taps_);
  }

  void sum(const RunArgs& args, int64_t image, int64_t row, Range input, std::byte* scratch) const {
    auto* taps = reinterpret_cast<SumRow*>(scratch + columns_ + products_);
    for (int64_t channel = 0; channel < p_.k; ++channel) {
      int count = 0;
      for (int64_t r = 0; r < p_.kh; ++r) {
        const int64_t y = row - p_.pt + r * p_.dh, from = y - input.begin;
        if (y < input.begin || y >= input.end) continue;
        const float* base = product(scratch, from / rows_) + from % rows_ * p_.w;
        for (int64_t s = 0; s < p_.kw; ++s) {
          const int64_t shift = s * p_.dw - p_.pl;  // from an output column to the input's
          const Range inside{std::clamp<int64_t>(-shift, 0, p_.ow), std::clamp<int64_t>(p_.w - shift, 0, p_.ow)};
          if (inside.begin >= inside.end) continue;
          const float* product_row = base + ((r * p_.kw + s) * p_.k + channel) * stride_;
          taps[count++] = {product_row + inside.begin + shift, static_cast<int>(inside.begin),
                           static_cast<int>(inside.end)};
        }
      }
      const int64_t at = (channel * p_.oh + row) * p_.ow;
      sum_rows_({.src = taps,
                 .rows = count,
                 .n = static_cast<int>(p_.ow),
                 .bias = bias_ != nullptr ? bias_[channel] : 0.0f,
                 .residual = residual_ ? input_image(args, 1, image) + at : nullptr,
                 .activation = activation_,
                 .dst = output_image(args, image) + at});
    }
  }

  const GemmKernels& kernels_;
  SumRowsKernel sum_rows_;
  Conv2dParams p_;
  Activation activation_;
  GemmArgs gemm_;
  const float* bias_ = nullptr;
  int64_t rows_ = 1, strips_ = 0, stride_ = 0;    // input rows of a strip, strips in the ring, floats between products
  size_t columns_ = 0, products_ = 0, taps_ = 0;  // bytes of a task
};

class Kn2rowConv2d final : public Routine {
 public:
  explicit Kn2rowConv2d(Isa isa)
      : Routine({.layer_type = "conv2d", .algorithm = "kn2row", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (p.groups != 1) return "has groups";
    if (p.kh * p.kw == 1) return "a 1x1 kernel has nothing to shift";
    if (p.sh != 1 || p.sw != 1) return "most of a strided convolution's products would be thrown away";
    if (p.k > most_outputs) return "has more than " + std::to_string(most_outputs) + " output channels";
    if (p.c < least_inputs) return "has fewer than " + std::to_string(least_inputs) + " input channels";
    const Refusal sizes = check_gemm_sizes(p.k * p.kh * p.kw, p.h * p.w, p.c);
    return sizes.accepted() ? check_int_sizes(p) : sizes;
  }

  std::vector<std::string> param_names() const override { return Kn2rowParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    // The columns of a strip stay in L2, beside their products.
    const Conv2dParams p = conv2d_params(problem);
    const int64_t row = p.w * (p.c + 2 * p.k * p.kh * p.kw) * 4;
    const int64_t fit = std::clamp<int64_t>(l2_bytes() / 2 / std::max<int64_t>(row, 1), 1, std::max<int64_t>(p.h, 1));
    return {Kn2rowParams{3, static_cast<int>(fit)}};
  }

  // Rows by tap and output channel.
  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing;
    packing.add("weights", problem.layer->weight("weight")->elements());
    add_bias(packing, *problem.layer, conv2d_params(problem).k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int64_t taps = p.kh * p.kw;
    const auto weight = problem.layer->weight("weight")->values();
    auto* weights = to.at<float>("weights");
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t row = 0; row < p.k * p.c; ++row) *weights++ = weight.get()[row * taps + tap];
    }
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto params = Kn2rowParams::of(tuning);
    parse_positive("rows", params.rows);
    return std::make_unique<PreparedKn2row>(problem, *gemm_kernels(info().isa), sum_rows_kernel(info().isa), params,
                                            std::move(packed));
  }
};

}  // namespace

void conv2d_kn2row(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<Kn2rowConv2d>(isa);
}

}  // namespace softneuro
