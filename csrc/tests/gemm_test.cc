// gemm against a product in double: random sizes, strides, tilings, work ranges, epilogues and types of results.
#include "kernels/gemm/gemm.h"

#include "tests/typed.h"

namespace softneuro::test {
namespace {

void check(Isa isa) {
  const GemmKernels& kernels = *gemm_kernels(isa);
  const int lanes = kernels.lanes;
  const int m = pick(0, 1) ? pick(1, 4) : pick(1, 60), n = pick(1, 7 * lanes), k = pick(0, 9) ? pick(1, 70) : 0;
  GemmTiling tiling{
      .panel = pick(1, kernels.max_panel), .row_block = pick(1, 40), .k_block = pick(0, 1) ? pick(1, 80) : 256};
  const bool floats = pick(0, 1);
  if (!floats) tiling.k_block = std::max(tiling.k_block, k);
  const bool transposed = pick(0, 1), bias_per_row = pick(0, 1);
  const int a_stride = k + pick(0, 5), dst_stride = n + pick(0, 5), b_stride = (transposed ? k : n) + pick(0, 5);
  const auto size = [](int rows, int columns, int stride) {
    return columns == 0 ? 0 : static_cast<size_t>(rows - 1) * stride + columns;
  };
  Guarded a(random_data(size(m, k, a_stride)));
  Guarded b(random_data(k == 0 ? 0 : transposed ? size(n, k, b_stride) : size(k, n, b_stride)));
  Guarded bias(random_data(bias_per_row ? m : n)), scale(random_data(bias_per_row ? m : n));
  Typed residual(floats ? ElementFormat() : random_elements(), random_data(size(m, n, dst_stride)));
  const bool has_bias = pick(0, 1), has_residual = pick(0, 1), has_scale = !floats && pick(0, 1);
  const Activation act = random_activation();

  Guarded packed(gemm_packed_size(n, k, lanes));
  const int panels = gemm_panels(n, lanes, tiling.panel), cut = pick(0, panels), middle = pick(0, m);
  kernels.pack_b(n, k, tiling.panel, b.data(), b_stride, transposed, 0, cut, packed.data());
  kernels.pack_b(n, k, tiling.panel, b.data(), b_stride, transposed, cut, panels,
                 packed.data() + (cut == panels ? 0 : gemm_panel_offset(k, lanes, tiling.panel, cut)));
  constexpr unsigned char untouched = 0x5a;
  Typed dst(floats ? ElementFormat() : random_elements(), size(m, n, dst_stride), untouched);
  Guarded scratch(kernels.scratch_bytes(m, k, tiling) / sizeof(float), NAN);
  const GemmArgs args{.m = m,
                      .n = n,
                      .k = k,
                      .tiling = tiling,
                      .a = a.data(),
                      .a_stride = a_stride,
                      .b = packed.data(),
                      .dst = dst.data(),
                      .dst_stride = dst_stride,
                      .bias_per_row = bias_per_row,
                      .epilogue = {.bias = has_bias ? bias.data() : nullptr,
                                   .residual = has_residual ? residual.residual() : Residual(),
                                   .activation = act,
                                   .scale = has_scale ? scale.data() : nullptr,
                                   .dst = dst.elements()}};
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, panels}}) {
    kernels.run(args, begin, end, 0, middle, scratch.data());
    kernels.run(args, begin, end, middle, m, scratch.data());
  }

  // Around zero an activation may cancel all but the absolute accuracy of its terms.
  double difference = 0, norm = 1e-2 * m * n;
  bool stays = true, near = true;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < dst_stride; ++j) {
      const size_t at = static_cast<size_t>(i) * dst_stride + j;
      if (at >= dst.size()) continue;
      if (j >= n) {
        stays = stays && dst.is_filled(at, untouched);
        continue;
      }
      const int term = bias_per_row ? i : j;
      double sum = 0;
      for (int l = 0; l < k; ++l) {
        sum += static_cast<double>(a.data()[i * a_stride + l]) *
               b.data()[transposed ? j * b_stride + l : l * b_stride + j];
      }
      if (has_scale) sum *= scale.data()[term];
      if (has_bias) sum += bias.data()[term];
      if (has_residual) sum += residual.value(at);
      const double want = apply(act, sum);
      if (floats) {
        difference += (dst.value(at) - want) * (dst.value(at) - want), norm += want * want;
      } else {
        near = near && dst.is_near(at, want, 2e-5 * (1 + std::fabs(want)));
      }
    }
  }
  if (std::sqrt(difference / norm) < 1e-5 && stays && near) return;
  if (++failures() > 20) return;
  std::printf("gemm %s: error %.3g%s%s; m %d n %d k %d panel %d rows %d k_block %d act %d dst %d residual %d\n",
              std::string(isa_name(isa)).c_str(), std::sqrt(difference / norm), stays ? "" : ", wrote past n",
              near ? "" : ", wrong element", m, n, k, tiling.panel, tiling.row_block, tiling.k_block,
              static_cast<int>(act.kind), static_cast<int>(dst.elements().type),
              static_cast<int>(residual.elements().type));
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(gemm_test) {
  for (const softneuro::Isa isa : softneuro::available_isas()) {
    for (int i = 0; i < 3000; ++i) softneuro::test::check(isa);
  }
}
