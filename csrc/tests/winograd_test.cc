// winograd against a convolution in double: random shapes, tiles, blocks, work ranges and epilogues.
#include "kernels/winograd/winograd.h"

#include "tests/check.h"

namespace softneuro::test {
namespace {

// Whether there are transforms.
bool strided(int kernel, int stride) { return stride == 1 || (stride == 2 && kernel % 2 == 1); }

void check(Isa isa, const Conv& c) {
  const WinogradKernels& kernels = *winograd_kernels(isa);
  const int block = kernels.block;
  WinogradShape shape{.groups = c.groups,
                      .in_channels = c.in_channels,
                      .out_channels = c.out_channels,
                      .images = 1,
                      .h = c.h,
                      .w = c.w,
                      .out_h = c.out_h,
                      .out_w = c.out_w,
                      .kernel_h = c.kernel_h,
                      .kernel_w = c.kernel_w,
                      .pad_top = c.pad_top,
                      .pad_left = c.pad_left,
                      .stride_h = c.stride_h,
                      .stride_w = c.stride_w};
  do {
    shape.tile_h = c.kernel_h == 1 ? 1 : pick(2, 8), shape.tile_w = c.kernel_w == 1 ? 1 : pick(2, 8);
  } while (!kernels.has_transform(shape.tile_h, c.kernel_h, c.stride_h) ||
           !kernels.has_transform(shape.tile_w, c.kernel_w, c.stride_w));
  if (c.kernel_h == c.kernel_w && c.stride_h == c.stride_w && pick(0, 1)) shape.tile_w = shape.tile_h;
  shape.in_passing = kernels.can_pass(shape) && pick(0, 1);
  shape.adds = !shape.in_passing && pick(0, 1);
  const int out_channels = c.groups * c.out_channels, pixels = c.out_h * c.out_w;

  const auto src = random_data(c.src_size()), rows = random_data(c.weights_size());
  const auto factors = pick(0, 1) ? random_data(out_channels) : std::vector<float>();
  std::vector<float> weights = rows;
  for (size_t i = 0; i < weights.size() && !factors.empty(); ++i) {
    weights[i] *= factors[i / (weights.size() / static_cast<size_t>(out_channels))];
  }
  const auto bias = pick(0, 1) ? random_data(out_channels) : std::vector<float>();
  const auto residual = pick(0, 1) ? random_data(c.dst_size()) : std::vector<float>();
  const Activation act = random_activation();

  Guarded blocked(to_blocked(src, c.groups * c.in_channels, c.h * c.w, block));
  Guarded packed(winograd_packed_size(shape, block));
  const WeightRows model{rows.data(), factors.empty() ? nullptr : factors.data()};
  const bool packs = !shape.in_passing || pick(0, 1);
  if (packs) winograd_pack(shape, kernels, model, packed.data());
  Guarded padded_bias(winograd_bias_size(shape, block));
  std::copy(bias.begin(), bias.end(), padded_bias.data());
  Guarded padded_residual(residual.empty() ? std::vector<float>() : to_blocked(residual, out_channels, pixels, block));
  Guarded dst(to_blocked(std::vector<float>(c.dst_size()), out_channels, pixels, block).size(), NAN);

  WinogradArgs args{};
  args.shape = shape;
  args.block = pick(1, 40);
  args.src = blocked.data(), args.weights = packed.data(), args.dst = dst.data();
  if (!packs) args.rows = model;
  args.epilogue.bias = bias.empty() ? nullptr : padded_bias.data();
  args.epilogue.residual = residual.empty() ? nullptr : padded_residual.data();
  args.epilogue.activation = act;
  Guarded scratch(kernels.scratch_bytes(shape, args.block) / sizeof(float), NAN);
  const int panels = winograd_panels(shape, block), cut = pick(0, panels);
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, panels}}) {
    const int middle = pick(0, shape.tiles());
    kernels.run(args, begin, end, 0, middle, scratch.data());
    kernels.run(args, begin, end, middle, shape.tiles(), scratch.data());
  }
  Verdict verdict =
      compare_blocked(dst.data(), reference(c, src, weights, bias, residual, act), out_channels, pixels, block);
  // report() asks for 1e-5; tiles that are mostly padding have the noise of whole ones, hence thirty times the expected
  // error.
  verdict.error /= std::max(1.0, winograd_error(shape) / 3.3e-7);
  report(verdict, "winograd", isa, c, static_cast<int>(act.kind));
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(winograd_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    const int block = winograd_kernels(isa)->block;
    for (int i = 0; i < 500; ++i) {
      const int kernel_h = pick(0, 2) ? 3 : pick(1, 7), kernel_w = pick(0, 2)      ? kernel_h
                                                                   : kernel_h == 1 ? 3
                                                                                   : pick(1, 7);
      if (kernel_h == 1 && kernel_w == 1) continue;
      Conv c = random_conv(1, pick(1, 3 * block), pick(1, 5 * block), kernel_h, kernel_w);
      if (pick(0, 3) == 0)
        c.groups = pick(2, 3), c.in_channels = block * pick(1, 2), c.out_channels = block * pick(1, 3);
      c.dilation_h = c.dilation_w = 1;
      if (!strided(kernel_h, c.stride_h)) c.out_h += (c.stride_h - 1) * (c.out_h - 1), c.stride_h = 1;
      if (!strided(kernel_w, c.stride_w)) c.out_w += (c.stride_w - 1) * (c.out_w - 1), c.stride_w = 1;
      check(isa, c);
    }
  }
}
