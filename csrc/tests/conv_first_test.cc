// conv_first against a convolution in double: random shapes, work ranges and epilogues.
#include "kernels/conv_first/conv_first.h"

#include "tests/check.h"

namespace softneuro::test {
namespace {

void check(Isa isa, const Conv& c) {
  const ConvFirstKernels& kernels = *conv_first_kernels(isa);
  const int block = kernels.block, channels = c.out_channels, pixels = c.out_h * c.out_w;
  const auto src = random_data(c.src_size()), weights = random_data(c.weights_size());
  const auto bias = pick(0, 1) ? random_data(channels) : std::vector<float>();
  const auto residual = pick(0, 1) ? random_data(c.dst_size()) : std::vector<float>();
  const Activation act = random_activation();

  ConvFirstArgs args{.in_channels = c.in_channels,
                     .out_channels = channels,
                     .h = c.h,
                     .w = c.w,
                     .out_h = c.out_h,
                     .out_w = c.out_w,
                     .kernel_h = c.kernel_h,
                     .kernel_w = c.kernel_w,
                     .stride_h = c.stride_h,
                     .stride_w = c.stride_w,
                     .dilation_h = c.dilation_h,
                     .dilation_w = c.dilation_w,
                     .pad_top = c.pad_top,
                     .pad_left = c.pad_left,
                     .row_block = pick(1, 6),
                     .epilogue = {}};
  Guarded image(src), packed(conv_first_packed_size(args, block));
  conv_first_pack(args, block, weights.data(), packed.data());
  Guarded padded_bias(to_blocked(bias.empty() ? std::vector<float>(channels) : bias, channels, 1, block));
  Guarded padded_residual(residual.empty() ? std::vector<float>() : to_blocked(residual, channels, pixels, block));
  Guarded dst(to_blocked(std::vector<float>(c.dst_size()), channels, pixels, block).size(), NAN);
  Guarded scratch(kernels.scratch_bytes(args) / sizeof(float), NAN);
  args.src = image.data(), args.weights = packed.data(), args.dst = dst.data();
  args.epilogue.bias = bias.empty() ? nullptr : padded_bias.data();
  args.epilogue.residual = residual.empty() ? nullptr : padded_residual.data();
  args.epilogue.activation = act;
  const int middle = pick(0, c.out_h);
  kernels.run(args, 0, middle, scratch.data());
  kernels.run(args, middle, c.out_h, scratch.data());
  report(compare_blocked(dst.data(), reference(c, src, weights, bias, residual, act), channels, pixels, block),
         "conv_first", isa, c, static_cast<int>(act.kind));
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_first_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    for (int i = 0; i < 700; ++i) {
      const int kernel_h = pick(1, 7), kernel_w = pick(0, 3) ? kernel_h : pick(1, 7);
      check(isa, random_conv(1, pick(1, 5), pick(1, 70), kernel_h, kernel_w));
    }
  }
}
