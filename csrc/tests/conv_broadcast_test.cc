// conv_broadcast against a convolution in double: random shapes, strides, images, work ranges and epilogues.
#include "kernels/conv_broadcast/conv_broadcast.h"

#include "tests/blocked_conv.h"

namespace softneuro::test {
namespace {

void check(Isa isa, const Conv& c) {
  const ConvBroadcastKernels& kernels = *conv_broadcast_kernels(isa);
  const int block = kernels.block, images = pick(1, 2), pixels = c.out_h * c.out_w;
  const auto weights = random_data(c.weights_size());
  const auto factors = some_data(c.out_channels);
  const auto bias = some_data(c.out_channels);
  const bool has_residual = pick(0, 1) != 0;
  const std::vector<float> scaled = scale_rows(weights, factors);

  std::vector<float> sources, residuals;
  std::vector<std::vector<double>> expected;
  const Activation act = random_activation();
  for (int image = 0; image < images; ++image) {
    const auto src = random_data(c.src_size());
    const auto residual = has_residual ? random_data(c.dst_size()) : std::vector<float>();
    expected.push_back(reference(c, src, scaled, bias, residual, act));
    const auto append = [&](std::vector<float>& all, const std::vector<float>& one, int channels, int plane) {
      const auto blocked = to_blocked(one, channels, plane, block);
      all.insert(all.end(), blocked.begin(), blocked.end());
    };
    append(sources, src, c.in_channels, c.h * c.w);
    if (has_residual) append(residuals, residual, c.out_channels, pixels);
  }
  const int in_blocks = ceil_div(c.in_channels, block), out_blocks = ceil_div(c.out_channels, block);
  const auto padded = [&](const std::vector<float>& values) {
    std::vector<float> whole = values;
    if (!whole.empty()) whole.resize(static_cast<size_t>(out_blocks) * block);
    return whole;
  };
  Guarded own_weights(weights), own_factors(padded(factors)), own_bias(padded(bias));
  Guarded src(sources), residual(residuals);
  const size_t dst_image = static_cast<size_t>(out_blocks) * block * pixels;
  Guarded dst(dst_image * images, NAN);

  ConvBroadcastArgs args;
  args.in_channels = c.in_channels, args.out_channels = c.out_channels;
  args.strips = {pixels, block, kernels.max_vectors};
  args.weights = own_weights.data();
  args.factors = factors.empty() ? nullptr : own_factors.data();
  args.src = src.data();
  args.src_plane = static_cast<size_t>(c.h) * c.w * block;
  args.src_image = args.src_plane * in_blocks;
  args.src_row = static_cast<size_t>(c.stride_h) * c.w * block;
  args.src_pixel = static_cast<size_t>(c.stride_w) * block;
  args.out_w = c.out_w;
  args.dst = dst.data();
  args.dst_image = args.residual_image = dst_image;
  args.epilogue.bias = bias.empty() ? nullptr : own_bias.data();
  args.epilogue.residual = has_residual ? residual.data() : nullptr;
  args.epilogue.activation = act;

  const int strips = images * args.strips.count, middle = pick(0, out_blocks), step = pick(1, strips);
  const size_t strip = conv_broadcast_strip_size(c.in_channels, block, kernels.max_vectors);
  for (int begin = 0; begin < strips; begin += step) {
    const int end = std::min(begin + step, strips), cut = pick(0, in_blocks);
    Guarded columns(strip * static_cast<size_t>(end - begin), NAN);
    for (int index = begin; index < end; ++index) {
      float* to = columns.data() + strip * static_cast<size_t>(index - begin);
      kernels.turn(args, index, 0, cut, to);
      kernels.turn(args, index, cut, in_blocks, to);
    }
    kernels.run(args, begin, end, 0, middle, columns.data());
    kernels.run(args, begin, end, middle, out_blocks, columns.data());
  }
  for (int image = 0; image < images; ++image) {
    report(compare_blocked(dst.data() + dst_image * image, expected[image], c.out_channels, pixels, block),
           "conv_broadcast", isa, c, static_cast<int>(act.kind));
  }
}

// Strips cover each pixel once, in order, and none is wider than asked for.
void check_strips(int pixels, int lanes, int max_vectors) {
  const ConvBroadcastStrips strips(pixels, lanes, max_vectors);
  int next = 0;
  bool good = strips.count > 0;
  for (int i = 0; i < strips.count; ++i) {
    const auto strip = strips.at(i);
    good = good && strip.begin == next && strip.vectors >= 1 && strip.vectors <= max_vectors && strip.valid >= 1 &&
           strip.valid > (strip.vectors - 1) * lanes && strip.valid <= strip.vectors * lanes;
    next += strip.pixels();
  }
  if (good && next == pixels) return;
  ++failures();
  std::printf("strips of %d pixels, %d lanes, %d vectors\n", pixels, lanes, max_vectors);
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_broadcast_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const int lanes : {4, 8, 16}) {
    for (int pixels = 1; pixels < 500; ++pixels) {
      check_strips(pixels, lanes, 3);
      check_strips(pixels, lanes, 6);
    }
  }
  for (const Isa isa : available_isas()) {
    const int block = conv_broadcast_kernels(isa)->block;
    for (int i = 0; i < 300; ++i) {
      check(isa, random_pointwise(pick(1, 5 * block), pick(1, 5 * block)));
    }
  }
}
