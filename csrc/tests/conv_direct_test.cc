// conv_direct against a convolution in double: random shapes, tilings, work ranges, epilogues and types of
// results.
#include "kernels/conv_direct/conv_direct.h"

#include "tests/blocked_conv.h"

namespace softneuro::test {
namespace {

void check(Isa isa, const Conv& c) {
  const ConvDirectKernels& kernels = *conv_direct_kernels(isa);
  const int block = kernels.block;
  const auto shape = sizes_of<ConvDirectShape>(c);
  ConvDirectTiling tiling{.panel = pick(1, kernels.max_panel), .row_block = pick(1, 8), .c_block = pick(1, 4)};
  if (shape.pointwise()) tiling.row_block = pick(1, 60);

  TypedConv conv(c, block);
  conv.add_factors();
  Guarded packed(conv_direct_packed_size(shape, block));
  kernels.pack(shape, tiling.panel, conv.rows(), packed.data());
  Guarded panel(conv_direct_panel_size(shape, block, tiling.panel), NAN);
  Guarded sums(conv.floats ? 0 : conv_direct_sums_size(shape, tiling, block), NAN);
  Guarded scratch(kernels.scratch_bytes(shape, tiling) / sizeof(float), NAN);

  ConvDirectArgs args{.shape = shape,
                      .tiling = tiling,
                      .src = conv.blocked_src.data(),
                      .weights = packed.data(),
                      .rows = {},
                      .dst = conv.own_dst.data(),
                      .epilogue = conv.typed_epilogue(false),
                      .sums = conv.floats ? nullptr : sums.data()};
  if (pick(0, 1)) {
    args.weights = nullptr;
    args.rows = conv.rows();
    args.panel_scratch = panel.data();
  }
  const int panels = conv_direct_panels(shape, block, tiling.panel), cut = pick(0, panels);
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, panels}}) {
    const int rows = shape.pointwise() ? conv.pixels : c.out_h, middle = pick(0, rows);
    for (const auto& [row, row_end] : {std::pair{0, middle}, std::pair{middle, rows}}) {
      if (shape.pointwise()) {
        kernels.run_pointwise(args, begin, end, row, row_end);
      } else {
        kernels.run(args, begin, end, row, row_end, scratch.data());
      }
    }
  }
  conv.report_typed("conv_direct", isa);
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_direct_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    const int block = conv_direct_kernels(isa)->block;
    for (int i = 0; i < 300; ++i) {
      const int kernel_h = pick(1, 5), kernel_w = pick(0, 2) ? kernel_h : pick(1, 7);
      check(isa, random_conv(1, pick(1, 3 * block), pick(1, 5 * block), kernel_h, kernel_w));
      check(isa, random_conv(pick(2, 3), block * pick(1, 2), block * pick(1, 3), kernel_h, kernel_w));
      Conv pointwise = random_conv(pick(0, 3) ? 1 : 2, block * pick(1, 5), block * pick(1, 5), 1, 1);
      pointwise.stride_h = pointwise.stride_w = 1, pointwise.pad_top = pointwise.pad_left = 0;
      pointwise.out_h = pointwise.h, pointwise.out_w = pointwise.w;
      if (pointwise.groups == 1)
        pointwise.out_channels -= pick(0, block - 1), pointwise.in_channels -= pick(0, block - 1);
      check(isa, pointwise);
    }
  }
}
