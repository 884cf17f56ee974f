// conv_depthwise against a convolution in double: random shapes, work ranges and epilogues.
#include "kernels/conv_depthwise/conv_depthwise.h"

#include "tests/blocked_conv.h"

namespace softneuro::test {
namespace {

void check(Isa isa, const Conv& c) {
  const ConvDepthwiseKernels& kernels = *conv_depthwise_kernels(isa);
  const int block = kernels.block, channels = c.groups;
  BlockedConv conv(c, block);
  Guarded packed(conv_depthwise_packed_size(channels, c.kernel_h, c.kernel_w, block));
  conv_depthwise_pack(channels, c.kernel_h, c.kernel_w, block, conv.weights.data(), packed.data());

  auto args = sizes_of<ConvDepthwiseArgs>(c);
  args.channels = channels;
  args.src = conv.blocked_src.data(), args.weights = packed.data(), args.dst = conv.dst.data();
  args.epilogue = conv.epilogue();
  const int blocks = ceil_div(channels, block), cut = pick(0, blocks), middle = pick(0, c.out_h);
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, blocks}}) {
    kernels.run(args, begin, end, 0, middle);
    kernels.run(args, begin, end, middle, c.out_h);
  }
  conv.report("conv_depthwise", isa);
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_depthwise_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    for (int i = 0; i < 1500; ++i) {
      const int kernel_h = pick(1, 7), kernel_w = pick(0, 3) ? kernel_h : pick(1, 7);
      check(isa, random_conv(pick(1, 40), 1, 1, kernel_h, kernel_w));
    }
  }
}
