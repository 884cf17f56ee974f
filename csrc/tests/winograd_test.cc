// winograd and winograd_int16 against a convolution in double: random shapes, tiles, blocks, work ranges and epilogues.
#include "kernels/winograd/winograd.h"

#include "kernels/winograd_int16/winograd_int16.h"
#include "tests/blocked_conv.h"

namespace softneuro::test {
namespace {

// Whether there are transforms.
bool strided(int kernel, int stride) { return stride == 1 || (stride == 2 && kernel % 2 == 1); }

WinogradShape random_shape(const WinogradKernels& kernels, const Conv& c) {
  auto shape = sizes_of<WinogradShape>(c);
  shape.images = 1;
  do {
    shape.tile_h = c.kernel_h == 1 ? 1 : pick(2, 8), shape.tile_w = c.kernel_w == 1 ? 1 : pick(2, 8);
  } while (!kernels.has_transform(shape.tile_h, c.kernel_h, c.stride_h) ||
           !kernels.has_transform(shape.tile_w, c.kernel_w, c.stride_w));
  if (c.kernel_h == c.kernel_w && c.stride_h == c.stride_w && pick(0, 1)) shape.tile_w = shape.tile_h;
  shape.in_passing = kernels.can_pass(shape) && pick(0, 1);
  return shape;
}

// In four parts.
template <class Kernels, class Args>
void run(const Kernels& kernels, const Args& args) {
  const WinogradShape& shape = args.shape;
  Guarded scratch(kernels.scratch_bytes(shape, args.block) / sizeof(float), NAN);
  const int panels = winograd_panels(shape, kernels.block), cut = pick(0, panels);
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, panels}}) {
    const int middle = pick(0, shape.tiles());
    kernels.run(args, begin, end, 0, middle, scratch.data());
    kernels.run(args, begin, end, middle, shape.tiles(), scratch.data());
  }
}

// report() asks for 1e-5; tiles that are mostly padding have the noise of whole ones, hence thirty times the expected
// error.
double bound(const WinogradShape& shape) { return 1e-5 * std::max(1.0, winograd_error(shape) / 3.3e-7); }

void check(Isa isa, const Conv& c) {
  const WinogradKernels& kernels = *winograd_kernels(isa);
  const int block = kernels.block;
  WinogradShape shape = random_shape(kernels, c);
  shape.adds = !shape.in_passing && pick(0, 1);

  BlockedConv conv(c, block);
  conv.add_factors();
  Guarded packed(winograd_packed_size(shape, block));
  const bool packs = !shape.in_passing || pick(0, 1);
  if (packs) winograd_pack(shape, kernels, conv.rows(), packed.data());

  WinogradArgs args{};
  args.shape = shape;
  args.block = pick(1, 40);
  args.src = conv.blocked_src.data(), args.weights = packed.data(), args.dst = conv.dst.data();
  if (!packs) args.rows = conv.rows();
  args.epilogue = conv.epilogue();
  run(kernels, args);
  conv.report("winograd", isa, bound(shape));
}

// [pixel][channel] of what is row-major, and the other way round.
template <class T>
std::vector<T> turned(const std::vector<T>& from, int rows, int columns) {
  std::vector<T> to(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i % columns * rows + i / columns] = from[i];
  return to;
}

// From bytes to floats, whose channels are side by side. pack(rows, packed) packs so many floats.
template <class Args, class Kernels, class Pack>
void check_bytes(const char* what, Isa isa, const Kernels& kernels, const WinogradShape& shape, const Conv& c,
                 double bound, size_t size, const Pack& pack) {
  BlockedConv conv(c, kernels.block);
  constexpr float step = 1.0F / 64;
  const int zero = pick(100, 156), inputs = c.groups * c.in_channels;  // near the mean: data without structure
  std::vector<uint8_t> bytes;
  for (float& value : conv.src) {
    bytes.push_back(static_cast<uint8_t>(pick(0, 255)));
    value = step * static_cast<float>(bytes.back() - zero);
  }
  Guarded packed(size), scale(winograd_bias_size(shape, kernels.block), step);
  pack(conv.rows(), packed.data());
  const std::vector<uint8_t> src = turned(bytes, inputs, c.h * c.w);
  const std::vector<float> residual = turned(conv.residual, conv.channels, conv.pixels);
  std::vector<float> dst(c.dst_size(), NAN);

  Args args{};
  args.shape = shape;
  args.shape.bytes = true;
  args.block = pick(1, 40);
  args.src = src.data(), args.weights = packed.data(), args.dst = dst.data();
  args.src_zero = static_cast<decltype(args.src_zero)>(zero);
  args.epilogue = {.bias = conv.bias_data(), .activation = conv.act, .scale = scale.data()};
  if (!residual.empty()) args.epilogue.residual = residual.data();
  run(kernels, args);
  const auto rows = turned(dst, conv.pixels, conv.channels);
  const auto blocked = to_blocked(rows, conv.channels, conv.pixels, kernels.block);
  std::copy(blocked.begin(), blocked.end(), conv.dst.data());
  conv.report(what, isa, bound);
}

void check_bytes(Isa isa, const Conv& c) {
  const WinogradKernels& kernels = *winograd_kernels(isa);
  const WinogradShape shape = random_shape(kernels, c);
  check_bytes<WinogradArgs>("winograd of bytes", isa, kernels, shape, c, bound(shape),
                            winograd_packed_size(shape, kernels.block),
                            [&](const WeightRows& rows, float* to) { winograd_pack(shape, kernels, rows, to); });
}

void check_int16(Isa isa) {
  const WinogradInt16Kernels& kernels = *winograd_int16_kernels(isa);
  const int block = kernels.block;
  Conv c = random_conv(1, pick(1, 10 * block), pick(1, 5 * block), 3, 3);
  if (pick(0, 3) == 0) c.groups = pick(2, 3), c.in_channels = block * pick(1, 5), c.out_channels = block * pick(1, 3);
  c.dilation_h = c.dilation_w = 1;
  c.out_h += (c.stride_h - 1) * (c.out_h - 1), c.out_w += (c.stride_w - 1) * (c.out_w - 1);
  c.stride_h = c.stride_w = 1;
  auto shape = sizes_of<WinogradShape>(c);
  shape.images = 1;
  shape.tile_h = 2 * pick(1, 2), shape.tile_w = 2 * pick(1, 2);
  check_bytes<WinogradInt16Args>("winograd of 16 bits", isa, kernels, shape, c, 30 * winograd_int16_error(shape),
                                 winograd_int16_packed_size(shape, block), [&](const WeightRows& rows, float* to) {
                                   winograd_int16_pack(shape, block, rows, to);
                                 });
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
      pick(0, 3) != 0 ? check(isa, c) : check_bytes(isa, c);
    }
  }
  std::vector<Isa> all = available_isas();
  for (const Isa isa : available_extensions()) all.push_back(isa);
  for (const Isa isa : all) {
    if (winograd_int16_kernels(isa) == nullptr) continue;
    for (int i = 0; i < 200; ++i) check_int16(isa);
  }
}
