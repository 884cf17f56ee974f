// conv_winograd_1968 against a convolution in double: random shapes, strides, blocks, work ranges and epilogues.
#include "kernels/conv_winograd_1968/conv_winograd_1968.h"

#include "tests/blocked_conv.h"

namespace softneuro::test {
namespace {

// Planes of `dense` floats, `apart` from each other.
std::vector<float> spread(Guarded& planes, size_t dense, size_t apart) {
  const size_t count = planes.size() / dense;
  std::vector<float> out(count * apart, NAN);
  for (size_t i = 0; i < count; ++i) std::copy_n(planes.data() + i * dense, dense, &out[i * apart]);
  return out;
}

void check(Isa isa, const Conv& c) {
  const ConvWinograd1968Kernels& kernels = *conv_winograd_1968_kernels(isa);
  const int block = kernels.block, blocks = ceil_div(c.out_channels, block);
  BlockedConv conv(c, block);
  ConvWinograd1968Args args;
  args.shape = {c.in_channels, c.out_channels, c.h, c.w, c.out_h, c.out_w, c.stride_h, c.stride_w};
  args.row_block = pick(1, conv.pixels);
  Guarded packed(conv_winograd_1968_packed_size(args.shape, block), NAN);
  conv_winograd_1968_pack(args.shape, block, conv.weights.data(), conv.bias.empty() ? nullptr : conv.bias.data(),
                          packed.data());
  const size_t src_plane = static_cast<size_t>(c.h) * c.w * block, dst_plane = static_cast<size_t>(conv.pixels) * block;
  if (pick(0, 1) != 0) args.src_plane = src_plane + pick(0, 2) * block;
  if (pick(0, 1) != 0) args.dst_plane = dst_plane + pick(0, 2) * block;
  const size_t src_apart = args.src_plane != 0 ? args.src_plane : src_plane;
  const size_t dst_apart = args.dst_plane != 0 ? args.dst_plane : dst_plane;
  Guarded src(spread(conv.blocked_src, src_plane, src_apart));
  Guarded residual(spread(conv.blocked_residual, dst_plane, dst_apart));
  Guarded dst(blocks * dst_apart, NAN);
  args.src = src.data();
  args.in_place = args.shape.dense() && pick(0, 1) != 0;
  args.weights = packed.data();
  args.dst = dst.data();
  args.epilogue = conv.epilogue(residual, dst);
  args.epilogue.bias = nullptr;

  const int cut = pick(0, blocks);
  Guarded scratch(kernels.scratch_bytes(args) / sizeof(float), NAN);
  for (int pixel = 0, count; pixel < conv.pixels; pixel += count) {
    count = std::min(pick(1, args.row_block), conv.pixels - pixel);
    kernels.prepare(args, pixel, count, scratch.data());
    kernels.run(args, 0, cut, pixel, count, scratch.data());
    kernels.run(args, cut, blocks, pixel, count, scratch.data());
  }
  for (int b = 0; b < blocks; ++b) std::copy_n(dst.data() + b * dst_apart, dst_plane, conv.dst.data() + b * dst_plane);
  conv.report("conv_winograd_1968", isa);
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_winograd_1968_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    const int block = conv_winograd_1968_kernels(isa)->block;
    for (int i = 0; i < 300; ++i) {
      check(isa, random_pointwise(pick(1, 5 * block), pick(1, 9 * block)));
    }
  }
}
