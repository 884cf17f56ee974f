// conv_first against a convolution in double: random shapes, work ranges and epilogues.
#include "kernels/conv_first/conv_first.h"

#include "tests/blocked_conv.h"

namespace softneuro::test {
namespace {

void check(Isa isa, const Conv& c) {
  const ConvFirstKernels& kernels = *conv_first_kernels(isa);
  BlockedConv conv(c, kernels.block);
  auto args = sizes_of<ConvFirstArgs>(c);
  args.row_block = pick(1, 6);
  Guarded image(conv.src), packed(conv_first_packed_size(args, kernels.block));
  conv_first_pack(args, kernels.block, conv.weights.data(), packed.data());
  Guarded scratch(kernels.scratch_bytes(args) / sizeof(float), NAN);
  args.src = image.data(), args.weights = packed.data(), args.dst = conv.dst.data();
  args.epilogue = conv.epilogue();
  const int middle = pick(0, c.out_h);
  kernels.run(args, 0, middle, scratch.data());
  kernels.run(args, middle, c.out_h, scratch.data());
  conv.report("conv_first", isa);
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
