// The first convolution of a net by Winograd's method along its rows.
#include "kernels/conv_first_winograd/conv_first_winograd.h"
#include "layers/conv2d/first.h"

namespace softneuro {
namespace {

class FirstWinogradConv2d final : public FirstConv2d {
 public:
  explicit FirstWinogradConv2d(Isa isa)
      : FirstConv2d({.layer_type = "conv2d",
                     .algorithm = "first_winograd",
                     .isa = isa,
                     .in = f32_nchw,
                     .out = f32_blocked(isa_block(isa)),
                     .error = ErrorClass::winograd,
                     .spreads_nonfinite = true}) {}

  Refusal check(const Problem& problem) const override {
    if (Refusal refusal = FirstConv2d::check(problem); !refusal.accepted()) return refusal;
    const Conv2dParams p = conv2d_params(problem);
    if ((p.dh != 1 && p.kh > 1) || p.dw != 1) return "has a dilation";
    if (p.kw > 7 || p.sw > 2 || !kernels().has_transform(static_cast<int>(p.kw), static_cast<int>(p.sw))) {
      return "no transform for a kernel of this width and stride";
    }
    return {};
  }

  double expected_error(const Problem& problem, const Tuning&) const override {
    return conv_first_winograd_error(first_args(conv2d_params(problem)));
  }

 protected:
  Kernel kernel() const override { return {kernels().scratch_bytes, kernels().run}; }
  Packing weights_packing(const ConvFirstArgs& args) const override {
    const int64_t rows = int64_t{args.out_channels} * args.in_channels * args.kernel_h;
    return Packing().add("weights", conv_first_winograd_packed_size(args, block()), DType::float32,
                         rows * conv_first_winograd_axis(args.kernel_w, args.stride_w).positions());
  }
  void pack_weights(const ConvFirstArgs& args, const float* weights, Packed& to) const override {
    conv_first_winograd_pack(args, block(), weights, to.at<float>("weights"));
  }
  int64_t copied_bytes(const Conv2dParams& p, int64_t rows) const override {
    return rows_read(p, rows) * p.ow *
           conv_first_winograd_axis(static_cast<int>(p.kw), static_cast<int>(p.sw)).positions() * p.c;
  }

 private:
  const ConvFirstWinogradKernels& kernels() const { return *conv_first_winograd_kernels(info().isa); }
};

}  // namespace

void conv2d_first_winograd(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<FirstWinogradConv2d>(isa);
}

}  // namespace softneuro
