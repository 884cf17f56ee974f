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
                        .depth = pick(0, 2) * 2 * block,
                        .src = nullptr,
                        .weights = nullptr,
                        .dst = nullptr,
                        .epilogue = {}};
  Guarded packed(conv_bfloat16_packed_bytes(args.shape, block) / sizeof(float), NAN);
  kernels.pack(args.shape, weights.data(), packed.data());
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
  Guarded scratch(kernels.scratch_bytes(args) / sizeof(float), NAN);
  for (const auto& [begin, end] : {std::pair{0, panel}, std::pair{panel, panels}}) {
    kernels.run(args, begin, end, 0, row, scratch.data());
    kernels.run(args, begin, end, row, c.out_h, scratch.data());
  }
  report(
      compare_blocked(dst.data(), reference(c, src, weights, bias, residual, act), c.out_channels, pixels, out_block),
      "conv_bfloat16", isa, c, static_cast<int>(act.kind), args.shape.parts == 3 ? 1e-5 : 1e-4);
}

// A column of pixels in two steps: planes that hold some of its rows, blobs whose blocks are far apart, and bit for bit
// what run gives.
void check_column(Isa isa, const ConvBfloat16Kernels& kernels) {
  const int block = kernels.block, pixels = pick(1, 100), in = pick(1, 5 * block), out = pick(1, 5 * block);
  const Conv c{1, in, out, pixels, 1, pixels, 1, 1, 1, 1, 1, 1, 1, 0, 0};
  const auto src = random_data(c.src_size()), weights = random_data(c.weights_size());
  const auto bias = random_data(static_cast<size_t>(round_up(out, block)));
  ConvBfloat16Args args{
      .shape = {.parts = pick(2, 3), .panel = pick(1, 2), .in_channels = in, .out_channels = out, .y = {}, .x = {1, 1}},
      .src = nullptr,
      .weights = nullptr,
      .dst = nullptr,
      .epilogue = {.bias = bias.data(), .activation = random_activation()}};
  args.shape.y = {.in = pixels, .out = pixels};
  Guarded packed(conv_bfloat16_packed_bytes(args.shape, block) / sizeof(float), NAN);
  kernels.pack(args.shape, weights.data(), packed.data());
  args.weights = packed.data();
  const int panels = conv_bfloat16_panels(args.shape, block);

  Guarded own_src(to_blocked(src, in, pixels, block));
  Guarded expected(static_cast<size_t>(round_up(out, block) * pixels), NAN);
  args.src = own_src.data();
  args.dst = expected.data();
  args.rows = pick(1, pixels);
  Guarded scratch(kernels.scratch_bytes(args) / sizeof(float), NAN);
  kernels.run(args, 0, panels, 0, pixels, scratch.data());

  // Rows [first, end) are in the planes, piece by piece; both blobs begin with row `first` and have gaps.
  const int first = pick(0, pixels - 1), end = pick(first + 1, pixels), gap = pick(0, 3);
  const int in_blocks = round_up(in, block) / block, out_blocks = round_up(out, block) / block;
  const size_t row = static_cast<size_t>(block), plane = static_cast<size_t>(end - first + gap) * row;
  Guarded spread(in_blocks * plane - gap * row, NAN), dst(out_blocks * plane - gap * row, NAN);
  for (int b = 0; b < in_blocks; ++b) {
    std::copy_n(own_src.data() + (static_cast<size_t>(b) * pixels + first) * row, (end - first) * row,
                spread.data() + b * plane);
  }
  args.rows = end - first + pick(0, 3);
  args.src = spread.data() - first * row, args.dst = dst.data() - first * row;
  args.src_plane = args.dst_plane = plane;
  Guarded planes(kernels.planes_bytes(args.shape, args.rows) / sizeof(float), NAN);
  Guarded sums(kernels.sums_bytes / sizeof(float), NAN);
  const int pairs = (in_blocks + 1) / 2, pair = pick(0, pairs), part = pick(first, end), panel = pick(0, panels);
  for (const auto& [a, b] : {std::pair{first, part}, std::pair{part, end}}) {
    kernels.split_column(args, 0, pair, first, a, b, planes.data());
    kernels.split_column(args, pair, pairs, first, a, b, planes.data());
  }
  for (const auto& [a, b] : {std::pair{first, part}, std::pair{part, end}}) {
    kernels.multiply_column(args, 0, panel, first, a, b, planes.data(), sums.data());
    kernels.multiply_column(args, panel, panels, first, a, b, planes.data(), sums.data());
  }
  for (int b = 0; b < out_blocks; ++b) {
    const float* const want = expected.data() + (static_cast<size_t>(b) * pixels + first) * row;
    const bool same = std::memcmp(dst.data() + b * plane, want, (end - first) * row * sizeof(float)) == 0;
    if (same) continue;
    std::printf("%s, %d to %d channels, rows %d to %d of %d: ", std::string(isa_name(isa)).c_str(), in, out, first, end,
                pixels);
    expect(false, "a column in two steps is what run makes of it");
    return;
  }
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
    check_column(isa, kernels);
  }
}

void check_amx() {
  if (const ConvBfloat16Kernels* kernels = conv_bfloat16_kernels(Isa::amx)) return check_some(Isa::amx, *kernels, 300);
#if defined(__x86_64__) && defined(__linux__) && !defined(SN_WITHOUT_amx)
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

SN_TEST(conv_bfloat16_test) {
  using namespace softneuro;
  test::splitting();
  test::check_some(Isa::scalar, *conv_bfloat16_kernels(Isa::scalar), 300);
  test::check_amx();
}
