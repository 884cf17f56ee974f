// conv_bfloat16 against a convolution in double: random shapes, bands, work ranges and epilogues; and how a float is
// split.
#include "kernels/conv_bfloat16/conv_bfloat16.h"

#include <algorithm>
#include <limits>

#include "kernels/conv_bfloat16/bfloat16.h"
#include "kernels/integers.h"
#include "tests/check.h"
#include "tests/tile_emulator.h"

namespace softneuro {

#if defined(__x86_64__)
extern const ConvBfloat16Kernels conv_bfloat16_amx;
#endif

namespace test {
namespace {

void check(Isa isa, const ConvBfloat16Kernels& kernels, const Conv& c) {
  // Channels-last is one block of all channels.
  const bool last = pick(0, 2) == 0;
  const int block = kernels.block, pixels = c.out_h * c.out_w;
  const int in_block = last ? c.in_channels : block, out_block = last ? c.out_channels : block;
  const auto src = random_data(c.src_size()), weights = random_data(c.weights_size());
  const auto bias = random_data(static_cast<size_t>(c.out_channels));
  const auto residual = pick(0, 1) ? random_data(c.dst_size()) : std::vector<float>();
  const Activation act = random_activation();

  ConvBfloat16Args args{.shape = {.parts = pick(2, 3),
                                  .panel = pick(1, 2),
                                  .in_channels = c.in_channels,
                                  .out_channels = c.out_channels,
                                  .y = {c.h, c.out_h, c.kernel_h, c.stride_h, c.dilation_h, c.pad_top},
                                  .x = {c.w, c.out_w, c.kernel_w, c.stride_w, c.dilation_w, c.pad_left}},
                        .rows = pick(1, c.out_h + 2),
                        .src = nullptr,
                        .weights = nullptr,
                        .dst = nullptr,
                        .epilogue = {}};
  Guarded packed(conv_bfloat16_packed_bytes(args.shape, block) / sizeof(float), NAN);
  conv_bfloat16_pack(args.shape, block, weights.data(), packed.data());
  std::vector<float> padded_bias = bias;
  padded_bias.resize(static_cast<size_t>(round_up(c.out_channels, block)));
  Guarded own_src(to_blocked(src, c.in_channels, c.h * c.w, in_block)), own_bias(padded_bias);
  Guarded dst(static_cast<size_t>(round_up(c.out_channels, out_block) * pixels), NAN);
  // The residual is the output's own memory.
  if (!residual.empty()) {
    const auto blocked = to_blocked(residual, c.out_channels, pixels, out_block);
    std::copy(blocked.begin(), blocked.end(), dst.data());
    args.epilogue.residual = dst.data();
  }
  if (last) args.src_pixel = static_cast<size_t>(in_block), args.dst_pixel = static_cast<size_t>(out_block);
  args.src = own_src.data();
  args.weights = packed.data();
  args.dst = dst.data();
  args.epilogue.bias = own_bias.data();
  args.epilogue.activation = act;

  const int panels = conv_bfloat16_panels(args.shape, block), panel = pick(0, panels), row = pick(0, c.out_h);
  Guarded scratch(kernels.scratch_bytes(args.shape, args.rows) / sizeof(float), NAN);
  for (const auto& [begin, end] : {std::pair{0, panel}, std::pair{panel, panels}}) {
    kernels.run(args, begin, end, 0, row, scratch.data());
    kernels.run(args, begin, end, row, c.out_h, scratch.data());
  }
  report(
      compare_blocked(dst.data(), reference(c, src, weights, bias, residual, act), c.out_channels, pixels, out_block),
      "conv_bfloat16", isa, c, static_cast<int>(act.kind), args.shape.parts == 3 ? 1e-5 : 1e-4);
}

// A float's parts by value, and what they leave.
struct Parts {
  double part[3], sum = 0;
  float rest;

  explicit Parts(float x) : rest(x) {
    for (double& value : part) sum += value = float_of(uint32_t{take_bfloat16(rest)} << 16);
  }
};

void splitting() {
  using Limits = std::numeric_limits<float>;
  for (int i = 0; i < 10000; ++i) {
    const float x = std::ldexp(random_data(1)[0], pick(-90, 127));
    const Parts parts(x);
    const double two = double{x} - parts.part[0] - parts.part[1];
    expect(std::fabs(two) <= std::ldexp(std::fabs(x), -17), "what two parts leave of a float");
    expect(std::fabs(two - parts.part[2]) <= std::ldexp(std::fabs(x), -25), "what three leave");
    expect(two - parts.part[2] == parts.rest, "and that it is told");
  }
  for (const float x : {Limits::max(), -Limits::max(), 3.395e38f}) {
    const Parts parts(x);
    expect(std::isfinite(parts.sum) && std::fabs(parts.sum - x) <= 1e-6 * std::fabs(x), "large values stay finite");
  }
  const float infinity = Limits::infinity();
  for (const float x : {infinity, -infinity, 0.0f, 1.5f}) {
    const Parts parts(x);
    expect(parts.part[0] == x && parts.part[1] == 0 && parts.part[2] == 0, "what is a bfloat16, infinity as well");
  }
  for (const uint32_t bits : {0x7fc00000u, 0x7f800001u, 0xffffffffu}) {
    const Parts parts(float_of(bits));
    expect(std::isnan(parts.part[0]) && parts.part[1] == 0, "NaN");
  }
}

void check_some(Isa isa, const ConvBfloat16Kernels& kernels, int count) {
  for (int i = 0; i < count; ++i) {
    const bool pointwise = pick(0, 2) == 0;
    const auto side = [&] { return pointwise ? 1 : pick(1, 5); };
    check(isa, kernels, random_conv(1, pick(1, 5 * kernels.block), pick(1, 5 * kernels.block), side(), side()));
  }
}

void check_amx() {
  if (const ConvBfloat16Kernels* kernels = conv_bfloat16_kernels(Isa::amx)) return check_some(Isa::amx, *kernels, 300);
#if defined(__x86_64__) && defined(__linux__)
  // What the kernels need besides tiles.
  if (!isa_available(Isa::avx512) || !__builtin_cpu_supports("avx512bf16")) return;
  TileEmulator::install();
  check_some(Isa::amx, conv_bfloat16_amx, 60);
  expect(TileEmulator::products() > 0, "tiles were emulated");
#endif
}

}  // namespace
}  // namespace test
}  // namespace softneuro

int main() {
  using namespace softneuro;
  test::splitting();
  test::check_some(Isa::scalar, *conv_bfloat16_kernels(Isa::scalar), 300);
  test::check_amx();
  return test::finish();
}
