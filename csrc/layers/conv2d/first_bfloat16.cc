// The first convolution of a net by products of bfloat16 tiles, three or six for each product of float32.
#include "kernels/conv_first_bfloat16/conv_first_bfloat16.h"
#include "layers/conv2d/first.h"
#include "layers/products/bfloat16_routine.h"

namespace softneuro {
namespace {

class FirstBfloat16Conv2d final : public FirstConv2d {
 public:
  FirstBfloat16Conv2d(Isa isa, int parts)
      : FirstConv2d({.layer_type = "conv2d",
                     .algorithm = std::string("first_") + bfloat16_algorithm(parts),
                     .isa = isa,
                     .in = f32_nchw,
                     .out = f32_blocked(isa_block(isa)),
                     .error = ErrorClass::bfloat16,
                     .spreads_nonfinite = true}),
        parts_(parts) {}

  Refusal check(const Problem& problem) const override {
    if (Refusal refusal = FirstConv2d::check(problem); !refusal.accepted()) return refusal;
    const Conv2dParams p = conv2d_params(problem);
    if (p.dw != 1) return "has a dilation along rows";
    ConvFirstArgs row_by_row = first_args(p);
    row_by_row.row_block = 1;
    if (!p.empty() && kernel().scratch_bytes(row_by_row) > most_scratch) return "needs more than 256 MiB of scratch";
    return {};
  }

  // Only where there are instructions for it (in plain code it is there to be tested on any machine) and where windows
  // are more than one step of tiles: those of 3x3 kernels take longer to put together than to sum up.
  bool promising(const Problem& problem) const override {
    const ConvFirstArgs s = first_args(conv2d_params(problem));
    const size_t step = static_cast<size_t>(block()) * 4 * parts_;  // bytes
    return info().isa == Isa::amx && conv_first_bfloat16_pixel_bytes(s, block(), parts_) > step;
  }

  double expected_error(const Problem& problem, const Tuning&) const override {
    const Conv2dParams p = conv2d_params(problem);
    return bfloat16_error(parts_, info().isa, p.c * p.kh * p.kw);
  }

 protected:
  Kernel kernel() const override {
    const ConvFirstBfloat16Kernels& kernels = *conv_first_bfloat16_kernels(info().isa);
    const ConvFirstBfloat16Kernels::Run& run = parts_ == 3 ? kernels.three_parts : kernels.two_parts;
    return {run.scratch_bytes, run.run};
  }
  Packing weights_packing(const ConvFirstArgs& args) const override {
    const size_t count = conv_first_bfloat16_packed_bytes(args, block(), parts_) / sizeof(BFloat16);
    const int64_t own = int64_t{args.out_channels} * args.in_channels * args.kernel_h * args.kernel_w;
    return Packing().add("weights", count, DType::bfloat16, parts_ * own);
  }
  void pack_weights(const ConvFirstArgs& args, const float* weights, Packed& to) const override {
    conv_first_bfloat16_pack(args, *conv_bfloat16_kernels(info().isa), parts_, weights, to.at<BFloat16>("weights"));
  }
  int64_t copied_bytes(const Conv2dParams& p, int64_t rows) const override {
    return rows * p.ow * static_cast<int64_t>(conv_first_bfloat16_pixel_bytes(first_args(p), block(), parts_));
  }

 private:
  int parts_;
};

}  // namespace

void conv2d_first_bfloat16(RoutineList& list) { add_bfloat16_routines<FirstBfloat16Conv2d>(list); }

}  // namespace softneuro
