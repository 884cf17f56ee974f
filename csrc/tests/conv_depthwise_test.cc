// conv_depthwise against a convolution in double: random shapes, work ranges and epilogues.
#include "kernels/conv_depthwise/conv_depthwise.h"

#include "tests/check.h"

namespace softneuro::test {
namespace {

void check(Isa isa, const Conv& c) {
  const ConvDepthwiseKernels& kernels = *conv_depthwise_kernels(isa);
  const int block = kernels.block, channels = c.groups, pixels = c.out_h * c.out_w;
  const auto src = random_data(c.src_size()), weights = random_data(c.weights_size());
  const auto bias = pick(0, 1) ? random_data(channels) : std::vector<float>();
  const auto residual = pick(0, 1) ? random_data(c.dst_size()) : std::vector<float>();
  const Activation act = random_activation();

  Guarded blocked(to_blocked(src, channels, c.h * c.w, block));
  Guarded packed(conv_depthwise_packed_size(channels, c.kernel_h, c.kernel_w, block));
  conv_depthwise_pack(channels, c.kernel_h, c.kernel_w, block, weights.data(), packed.data());
  Guarded padded_bias(to_blocked(bias.empty() ? std::vector<float>(channels) : bias, channels, 1, block));
  Guarded padded_residual(residual.empty() ? std::vector<float>() : to_blocked(residual, channels, pixels, block));
  Guarded dst(to_blocked(std::vector<float>(c.dst_size()), channels, pixels, block).size(), NAN);

  const ConvDepthwiseArgs args{.channels = channels,
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
                               .src = blocked.data(),
                               .weights = packed.data(),
                               .dst = dst.data(),
                               .epilogue = {.bias = bias.empty() ? nullptr : padded_bias.data(),
                                            .residual = residual.empty() ? nullptr : padded_residual.data(),
                                            .activation = act}};
  const int blocks = (channels + block - 1) / block, cut = pick(0, blocks), middle = pick(0, c.out_h);
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, blocks}}) {
    kernels.run(args, begin, end, 0, middle);
    kernels.run(args, begin, end, middle, c.out_h);
  }
  report(compare_blocked(dst.data(), reference(c, src, weights, bias, residual, act), channels, pixels, block),
         "conv_depthwise", isa, c, static_cast<int>(act.kind));
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_depthwise_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    for (int i = 0; i < 1500; ++i) {
      const int kernel_h = pick(1, 7), kernel_w = pick(0, 3) ? kernel_h : pick(1, 7);
      Conv c = random_conv(pick(1, 40), 1, 1, kernel_h, kernel_w);
      check(isa, c);
    }
  }
}
