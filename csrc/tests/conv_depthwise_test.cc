// conv_depthwise and conv_depthwise_int8 against a convolution in double: random shapes, work ranges, epilogues and
// types of results.
#include "kernels/conv_depthwise/conv_depthwise.h"

#include "kernels/conv_depthwise_int8/conv_depthwise_int8.h"
#include "tests/blocked_conv.h"

namespace softneuro::test {
namespace {

void check(Isa isa, const Conv& c) {
  const ConvDepthwiseKernels& kernels = *conv_depthwise_kernels(isa);
  const int block = kernels.block, channels = c.groups;
  TypedConv conv(c, block);
  Guarded packed(conv_depthwise_packed_size(channels, c.kernel_h, c.kernel_w, block));
  conv_depthwise_pack(channels, c.kernel_h, c.kernel_w, block, conv.weights.data(), packed.data());

  auto args = sizes_of<ConvDepthwiseArgs>(c);
  args.channels = channels;
  args.src = conv.blocked_src.data(), args.weights = packed.data(), args.dst = conv.own_dst.data();
  args.epilogue = conv.typed_epilogue(true);
  Guarded sums(conv.floats ? 0 : static_cast<size_t>(2 * c.out_w * block), NAN);
  if (!conv.floats) args.sums = sums.data();
  const int blocks = ceil_div(channels, block), cut = pick(0, blocks), middle = pick(0, c.out_h);
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, blocks}}) {
    kernels.run(args, begin, end, 0, middle);
    kernels.run(args, begin, end, middle, c.out_h);
  }
  conv.report_typed("conv_depthwise", isa);
}

// Channels of a pixel side by side.
std::vector<float> channels_last(const std::vector<float>& planes, int channels) {
  return to_blocked(planes, channels, static_cast<int>(planes.size()) / channels, channels);
}

void check_int8(Isa isa, const Conv& c) {
  const ConvDepthwiseInt8Kernels& kernels = *conv_depthwise_int8_kernels(isa);
  const int channels = c.groups, block = kernels.block, places = round_up(channels, block);
  const int zero = pick(0, 255), taps = c.kernel_h * c.kernel_w, size = pick(1, 127);
  std::vector<float> src(c.src_size()), weights(c.weights_size()), residual = some_data(c.dst_size());
  for (float& x : src) x = static_cast<float>(pick(0, 255) - zero);
  for (float& x : weights) x = static_cast<float>(pick(-size, size));
  std::vector<int8_t> bytes(weights.begin(), weights.end());
  Guarded packed(conv_depthwise_int8_packed_bytes(channels, c.kernel_h, c.kernel_w, block) / sizeof(float));
  auto* const own_weights = reinterpret_cast<int8_t*>(packed.data());
  conv_depthwise_int8_pack(channels, c.kernel_h, c.kernel_w, block, bytes.data(), own_weights);

  const std::vector<float> scale = random_data(channels, 1e-3F), bias = random_data(channels);
  std::vector<int32_t> start(places);
  Guarded scales(places), biases(places);
  for (int place = 0; place < places; ++place) {
    const int channel = conv_depthwise_int8_channel_at(place, block);
    if (channel >= channels) continue;
    for (int tap = 0; tap < taps; ++tap) start[place] -= zero * bytes[channel * taps + tap];
    scales.data()[place] = scale[channel], biases.data()[place] = bias[channel];
  }

  // Sums may already count steps.
  ElementFormat to = random_elements();
  if (element_bytes(to.type) == 1 && pick(0, 1)) to.scale = 1;
  Typed image({DType::uint8, 1, zero, 0, 255}, channels_last(src, channels)), dst(to, c.dst_size());
  Typed added(random_elements(), channels_last(residual, channels));
  ConvDepthwiseInt8 args{.channels = channels, .h = c.h, .w = c.w, .oh = c.out_h, .ow = c.out_w};
  args.kh = c.kernel_h, args.kw = c.kernel_w, args.sh = c.stride_h, args.sw = c.stride_w;
  args.dh = c.dilation_h, args.dw = c.dilation_w, args.pt = c.pad_top, args.pl = c.pad_left;
  args.src = static_cast<const uint8_t*>(image.data()), args.src_end = args.src + image.size();
  args.src_zero = static_cast<uint8_t>(zero), args.weights = own_weights, args.start = start.data();
  args.epilogue = {.bias = biases.data(), .activation = random_activation(), .scale = scales.data(), .dst = to};
  if (!residual.empty()) args.epilogue.residual = added.residual();
  args.dst = dst.data();
  const int blocks = places / block, cut = pick(0, blocks), middle = pick(0, c.out_h);
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, blocks}}) {
    kernels.run(args, begin, end, 0, middle);
    kernels.run(args, begin, end, middle, c.out_h);
  }

  const auto pixels = static_cast<size_t>(c.out_h * c.out_w);
  for (size_t i = 0; i < residual.size(); ++i) {  // as it was stored
    residual[i] = static_cast<float>(added.value(i % pixels * channels + i / pixels));
  }
  const auto want = reference(c, src, scale_rows(weights, scale), bias, residual, args.epilogue.activation);
  Verdict verdict;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = 2e-5 * (1 + std::fabs(want[i]));
    if (!dst.is_near(i % pixels * channels + i / pixels, want[i], error)) verdict.error = 1;
  }
  report(verdict, "conv_depthwise_int8", isa, c, static_cast<int>(args.epilogue.activation.kind));
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_depthwise_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  const auto random = [](int channels) {
    const int kernel_h = pick(1, 7), kernel_w = pick(0, 3) ? kernel_h : pick(1, 7);
    return random_conv(channels, 1, 1, kernel_h, kernel_w);
  };
  for (const Isa isa : available_isas()) {
    for (int i = 0; i < 1500; ++i) check(isa, random(pick(1, 40)));
  }
  std::vector<Isa> all = available_isas();
  for (const Isa isa : available_extensions()) all.push_back(isa);
  for (const Isa isa : all) {
    if (conv_depthwise_int8_kernels(isa) == nullptr) continue;
    for (int i = 0; i < 500; ++i) check_int8(isa, random(pick(1, 150)));
  }
}
