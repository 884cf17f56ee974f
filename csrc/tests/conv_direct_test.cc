// conv_direct against a convolution in double: random shapes, tilings, work ranges, epilogues and types of
// results.
#include "kernels/conv_direct/conv_direct.h"

#include "tests/typed.h"

namespace softneuro::test {
namespace {

ConvDirectShape shape_of(const Conv& c) {
  return {.groups = c.groups,
          .in_channels = c.in_channels,
          .out_channels = c.out_channels,
          .h = c.h,
          .w = c.w,
          .out_h = c.out_h,
          .out_w = c.out_w,
          .kernel_h = c.kernel_h,
          .kernel_w = c.kernel_w,
          .stride_h = c.stride_h,
          .stride_w = c.stride_w,
          .dilation_h = c.dilation_h,
          .dilation_w = c.dilation_w,
          .pad_top = c.pad_top,
          .pad_left = c.pad_left};
}

void check(Isa isa, const Conv& c) {
  const ConvDirectKernels& kernels = *conv_direct_kernels(isa);
  const int block = kernels.block;
  const ConvDirectShape shape = shape_of(c);
  ConvDirectTiling tiling{.panel = pick(1, kernels.max_panel), .row_block = pick(1, 8), .c_block = pick(1, 4)};
  if (shape.pointwise()) tiling.row_block = pick(1, 60);
  const int out_channels = c.groups * c.out_channels, pixels = c.out_h * c.out_w;

  const auto src = random_data(c.src_size()), rows_of_weights = random_data(c.weights_size());
  const auto factors = pick(0, 1) ? random_data(out_channels) : std::vector<float>();
  std::vector<float> weights = rows_of_weights;
  for (size_t i = 0; i < weights.size() && !factors.empty(); ++i) {
    weights[i] *= factors[i / (weights.size() / static_cast<size_t>(out_channels))];
  }
  const auto bias = pick(0, 1) ? random_data(out_channels) : std::vector<float>();
  auto residual = pick(0, 1) ? random_data(c.dst_size()) : std::vector<float>();
  const bool floats = pick(0, 2) != 0;
  const auto scale = !floats && pick(0, 1) ? random_data(out_channels) : std::vector<float>();
  const Activation act = random_activation();

  Guarded blocked(to_blocked(src, c.groups * c.in_channels, c.h * c.w, block));
  Guarded packed(conv_direct_packed_size(shape, block));
  Guarded own_rows(rows_of_weights);
  const WeightRows rows{own_rows.data(), factors.empty() ? nullptr : factors.data()};
  kernels.pack(shape, tiling.panel, rows, packed.data());
  Guarded panel(conv_direct_panel_size(shape, block, tiling.panel), NAN);
  Guarded padded_bias(conv_direct_bias_size(shape, block));
  std::copy(bias.begin(), bias.end(), padded_bias.data());
  Guarded padded_scale(conv_direct_bias_size(shape, block));
  std::copy(scale.begin(), scale.end(), padded_scale.data());
  const size_t size = to_blocked(std::vector<float>(c.dst_size()), out_channels, pixels, block).size();
  Typed padded_residual(floats ? ElementFormat() : random_elements(),
                        residual.empty() ? std::vector<float>() : to_blocked(residual, out_channels, pixels, block));
  Typed dst(floats ? ElementFormat() : random_elements(), size, 0xff);
  Guarded sums(floats ? 0 : conv_direct_sums_size(shape, tiling, block), NAN);
  const size_t scratch_bytes = kernels.scratch_bytes(shape, tiling);
  Guarded scratch(scratch_bytes / sizeof(float), NAN);

  ConvDirectArgs args{.shape = shape,
                      .tiling = tiling,
                      .src = blocked.data(),
                      .weights = packed.data(),
                      .rows = {},
                      .dst = dst.data(),
                      .epilogue = {},
                      .sums = floats ? nullptr : sums.data()};
  if (pick(0, 1)) {
    args.weights = nullptr;
    args.rows = rows;
    args.panel_scratch = panel.data();
  }
  args.epilogue.bias = bias.empty() ? nullptr : padded_bias.data();
  args.epilogue.residual = residual.empty() ? Residual() : padded_residual.residual();
  args.epilogue.scale = scale.empty() ? nullptr : padded_scale.data();
  args.epilogue.dst = dst.elements();
  args.epilogue.activation = act;
  const int panels = conv_direct_panels(shape, block, tiling.panel), cut = pick(0, panels);
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, panels}}) {
    const int rows = shape.pointwise() ? pixels : c.out_h, middle = pick(0, rows);
    for (const auto& [row, row_end] : {std::pair{0, middle}, std::pair{middle, rows}}) {
      if (shape.pointwise() && pick(0, 3) != 0) {
        kernels.run_pointwise(args, begin, end, row, row_end);
      } else if (!shape.pointwise()) {
        kernels.run(args, begin, end, row, row_end, scratch.data());
      } else {
        kernels.run_pointwise(args, begin, end, row, row_end);
      }
    }
  }
  for (size_t i = 0; i < residual.size(); ++i) {  // as it was stored
    const auto channel = static_cast<int>(i / pixels), pixel = static_cast<int>(i % pixels);
    residual[i] = static_cast<float>(
        padded_residual.value((static_cast<size_t>(channel / block) * pixels + pixel) * block + channel % block));
  }
  // A scale of sums is one of the weights.
  for (size_t i = 0; i < weights.size() && !scale.empty(); ++i) {
    weights[i] *= scale[i / (weights.size() / static_cast<size_t>(out_channels))];
  }
  const std::vector<double> want = reference(c, src, weights, bias, residual, act);
  if (floats) {
    const auto* got = static_cast<const float*>(dst.data());
    report(compare_blocked(got, want, out_channels, pixels, block), "conv_direct", isa, c, static_cast<int>(act.kind));
    return;
  }
  Verdict verdict;
  for (size_t i = 0; i < size; ++i) {
    const size_t pixel = i / block % pixels, channel = i / block / pixels * block + i % block;
    if (channel >= static_cast<size_t>(out_channels)) {
      verdict.padding = verdict.padding && dst.value(i) == 0;
    } else if (!dst.is_near(i, want[channel * pixels + pixel],
                            2e-5 * (1 + std::fabs(want[channel * pixels + pixel])))) {
      verdict.error = 1;
    }
  }
  report(verdict, floats ? "conv_direct" : "conv_direct to another type", isa, c, static_cast<int>(act.kind));
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
