// conv_strassen against a convolution in double: random shapes, strides, panels, blocks, work ranges and epilogues.
#include "kernels/conv_strassen/conv_strassen.h"

#include "tests/blocked_conv.h"

namespace softneuro::test {
namespace {

void check(Isa isa, const Conv& c) {
  const ConvStrassenKernels& kernels = *conv_strassen_kernels(isa);
  const int block = kernels.block;
  BlockedConv conv(c, block);
  ConvStrassenArgs args;
  args.shape = {c.in_channels, c.out_channels, c.h, c.w, c.out_h, c.out_w, c.stride_h, c.stride_w};
  args.tiling = {pick(1, kernels.max_panel), pick(1, 2 * conv.pixels)};
  Guarded packed(conv_strassen_packed_size(args.shape, block), NAN);
  conv_strassen_pack(args.shape, block, args.tiling.panel, conv.weights.data(), packed.data());
  args.src = conv.blocked_src.data();
  args.weights = packed.data();
  args.dst = conv.dst.data();
  args.epilogue = conv.epilogue();

  const int panels = conv_strassen_panels(args.shape, block, args.tiling.panel);
  const int panel = pick(0, panels), pixel = pick(0, conv.pixels);
  Guarded scratch(kernels.scratch_bytes(args.shape, args.tiling) / sizeof(float), NAN);
  for (const auto& [begin, end] : {std::pair{0, panel}, std::pair{panel, panels}}) {
    kernels.run(args, begin, end, 0, pixel, scratch.data());
    kernels.run(args, begin, end, pixel, conv.pixels, scratch.data());
  }
  conv.report("conv_strassen", isa);
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_strassen_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    const int block = conv_strassen_kernels(isa)->block;
    for (int i = 0; i < 300; ++i) {
      check(isa, random_pointwise(pick(1, 5 * block), pick(1, 9 * block)));
    }
  }
}
