// conv_winograd_1968 against a convolution in double: random shapes, strides, blocks, work ranges and epilogues.
#include "kernels/conv_winograd_1968/conv_winograd_1968.h"

#include <algorithm>

#include "kernels/integers.h"
#include "tests/check.h"

namespace softneuro::test {
namespace {

// Planes of `dense` floats, `apart` from each other.
std::vector<float> spread(const std::vector<float>& planes, size_t dense, size_t apart) {
  const size_t count = planes.size() / dense;
  std::vector<float> out(count * apart, NAN);
  for (size_t i = 0; i < count; ++i) std::copy_n(&planes[i * dense], dense, &out[i * apart]);
  return out;
}

void check(Isa isa, const Conv& c) {
  const ConvWinograd1968Kernels& kernels = *conv_winograd_1968_kernels(isa);
  const int block = kernels.block, pixels = c.out_h * c.out_w;
  const auto src = random_data(c.src_size()), weights = random_data(c.weights_size());
  const auto bias = pick(0, 1) ? random_data(c.out_channels) : std::vector<float>();
  const auto residual = pick(0, 1) ? random_data(c.dst_size()) : std::vector<float>();
  const Activation act = random_activation();

  ConvWinograd1968Args args;
  args.shape = {c.in_channels, c.out_channels, c.h, c.w, c.out_h, c.out_w, c.stride_h, c.stride_w};
  args.row_block = pick(1, pixels);
  Guarded packed(conv_winograd_1968_packed_size(args.shape, block), NAN);
  conv_winograd_1968_pack(args.shape, block, weights.data(), bias.empty() ? nullptr : bias.data(), packed.data());
  const size_t src_plane = static_cast<size_t>(c.h) * c.w * block, dst_plane = static_cast<size_t>(pixels) * block;
  if (pick(0, 1) != 0) args.src_plane = src_plane + pick(0, 2) * block;
  if (pick(0, 1) != 0) args.dst_plane = dst_plane + pick(0, 2) * block;
  const size_t src_apart = args.src_plane != 0 ? args.src_plane : src_plane;
  const size_t dst_apart = args.dst_plane != 0 ? args.dst_plane : dst_plane;
  Guarded own_src(spread(to_blocked(src, c.in_channels, c.h * c.w, block), src_plane, src_apart));
  Guarded own_residual(
      residual.empty() ? residual : spread(to_blocked(residual, c.out_channels, pixels, block), dst_plane, dst_apart));
  const size_t floats = ceil_div(c.out_channels, block) * dst_apart;
  Guarded dst(floats, NAN);
  // The residual may be the output's own memory.
  const bool in_place = !residual.empty() && pick(0, 1) != 0;
  if (in_place) std::copy_n(own_residual.data(), floats, dst.data());
  args.src = own_src.data();
  args.in_place = args.shape.dense() && pick(0, 1) != 0;
  args.weights = packed.data();
  args.dst = dst.data();
  args.epilogue.residual = residual.empty() ? nullptr : in_place ? dst.data() : own_residual.data();
  args.epilogue.activation = act;

  const int blocks = ceil_div(c.out_channels, block), cut = pick(0, blocks);
  Guarded scratch(kernels.scratch_bytes(args) / sizeof(float), NAN);
  for (int pixel = 0, count; pixel < pixels; pixel += count) {
    count = std::min(pick(1, args.row_block), pixels - pixel);
    kernels.prepare(args, pixel, count, scratch.data());
    kernels.run(args, 0, cut, pixel, count, scratch.data());
    kernels.run(args, cut, blocks, pixel, count, scratch.data());
  }
  std::vector<float> result;
  for (int b = 0; b < blocks; ++b) {
    result.insert(result.end(), dst.data() + b * dst_apart, dst.data() + b * dst_apart + dst_plane);
  }
  report(compare_blocked(result.data(), reference(c, src, weights, bias, residual, act), c.out_channels, pixels, block),
         "conv_winograd_1968", isa, c, static_cast<int>(act.kind));
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(conv_winograd_1968_test) {
  using namespace softneuro;
  using namespace softneuro::test;
  for (const Isa isa : available_isas()) {
    const int block = conv_winograd_1968_kernels(isa)->block;
    for (int i = 0; i < 300; ++i) {
      Conv c = random_conv(1, pick(1, 5 * block), pick(1, 9 * block), 1, 1);
      c.pad_top = c.pad_left = 0;
      if (pick(0, 1) != 0) c.stride_h = c.stride_w = 1;
      c.out_h = ceil_div(c.h, c.stride_h), c.out_w = ceil_div(c.w, c.stride_w);
      check(isa, c);
    }
  }
}
