// conv_strassen against a convolution in double: random shapes, strides, panels, blocks, work ranges and epilogues.
#include "kernels/conv_strassen/conv_strassen.h"

#include <algorithm>

#include "kernels/integers.h"
#include "tests/check.h"

namespace softneuro::test {
namespace {

void check(Isa isa, const Conv& c) {
  const ConvStrassenKernels& kernels = *conv_strassen_kernels(isa);
  const int block = kernels.block, pixels = c.out_h * c.out_w;
  const auto src = random_data(c.src_size()), weights = random_data(c.weights_size());
  const auto bias = pick(0, 1) ? random_data(c.out_channels) : std::vector<float>();
  const auto residual = pick(0, 1) ? random_data(c.dst_size()) : std::vector<float>();
  const Activation act = random_activation();

  ConvStrassenArgs args;
  args.shape = {c.in_channels, c.out_channels, c.h, c.w, c.out_h, c.out_w, c.stride_h, c.stride_w};
  args.tiling = {pick(1, kernels.max_panel), pick(1, 2 * pixels)};
  Guarded packed(conv_strassen_packed_size(args.shape, block), NAN);
  conv_strassen_pack(args.shape, block, args.tiling.panel, weights.data(), packed.data());
  const auto padded = [&](const std::vector<float>& values) {
    std::vector<float> whole = values;
    if (!whole.empty()) whole.resize(static_cast<size_t>(round_up(c.out_channels, block)));
    return whole;
  };
  Guarded own_src(to_blocked(src, c.in_channels, c.h * c.w, block)), own_bias(padded(bias));
  Guarded own_residual(residual.empty() ? residual : to_blocked(residual, c.out_channels, pixels, block));
  Guarded dst(static_cast<size_t>(round_up(c.out_channels, block)) * pixels, NAN);
  // The residual may be the output's own memory.
  const bool in_place = !residual.empty() && pick(0, 1) != 0;
  if (in_place)
    std::copy_n(own_residual.data(), static_cast<size_t>(round_up(c.out_channels, block)) * pixels, dst.data());
  args.src = own_src.data();
  args.weights = packed.data();
  args.dst = dst.data();
  args.epilogue.bias = bias.empty() ? nullptr : own_bias.data();
  args.epilogue.residual = residual.empty() ? nullptr : in_place ? dst.data() : own_residual.data();
  args.epilogue.activation = act;

  const int panels = conv_strassen_panels(args.shape, block, args.tiling.panel);
  const int panel = pick(0, panels), pixel = pick(0, pixels);
  Guarded scratch(kernels.scratch_bytes(args.shape, args.tiling) / sizeof(float), NAN);
  for (const auto& [begin, end] : {std::pair{0, panel}, std::pair{panel, panels}}) {
    kernels.run(args, begin, end, 0, pixel, scratch.data());
    kernels.run(args, begin, end, pixel, pixels, scratch.data());
  }
  report(compare_blocked(dst.data(), reference(c, src, weights, bias, residual, act), c.out_channels, pixels, block),
         "conv_strassen", isa, c, static_cast<int>(act.kind));
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_strassen_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    const int block = conv_strassen_kernels(isa)->block;
    for (int i = 0; i < 300; ++i) {
      Conv c = random_conv(1, pick(1, 5 * block), pick(1, 9 * block), 1, 1);
      c.pad_top = c.pad_left = 0;
      if (pick(0, 1) != 0) c.stride_h = c.stride_w = 1;
      c.out_h = ceil_div(c.h, c.stride_h), c.out_w = ceil_div(c.w, c.stride_w);
      check(isa, c);
    }
  }
}
