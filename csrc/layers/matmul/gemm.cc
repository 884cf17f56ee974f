// Products of matrix pairs; a strip of b is packed just before it is used, a is transposed first if it has to be.
#include <algorithm>

#include "layers/matmul/matmul.h"
#include "layers/products/gemm_tasks.h"
#include "layers/shared/split.h"

namespace softneuro {
namespace {

// dst[columns][rows] of src[rows][columns], in squares that stay in L1.
void transpose_into(const float* src, int64_t stride, int64_t rows, int64_t columns, float* dst) {
  constexpr int64_t side = 16;
  for (int64_t r = 0; r < rows; r += side)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t i = r; i < std::min(r + side, rows); ++i) dst[c * rows + i] = src[i * stride + c];
}

class PreparedMatmul final : public PreparedSplit {
 public:
  PreparedMatmul(const Problem& problem, const GemmKernels& kernels, const GemmStripParams& params)
      : PreparedSplit(problem),
        kernels_(kernels),
        p_(matmul_params(*problem.layer, problem.in[0], problem.in[1])),
        strip_(params.columns) {
    gemm_.k = static_cast<int>(p_.k);
    gemm_.tiling = gemm_tiling(kernels, params.panel);
    gemm_.epilogue.activation = problem.layer->post.activation;
    if (problem.out().shape.elements() == 0) return;
    const int64_t vectors = ceil_div(p_.n, kernels.lanes);
    split_ = WorkSplit(p_.batch.elements(), vectors, p_.m, problem.threads, parse_split(params.split));
    columns_ =
        round_to_line(static_cast<size_t>(std::min<int64_t>(strip_, vectors * kernels.lanes) * p_.k) * sizeof(float));
    transposed_ = p_.transpose_a ? round_to_line(static_cast<size_t>(p_.m * p_.k) * sizeof(float)) : 0;
    scratch_ =
        columns_ + transposed_ + round_to_line(kernels.scratch_bytes(static_cast<int>(p_.m), gemm_.k, gemm_.tiling));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t index, Range vectors, Range rows, std::byte* scratch) {
      run_part(args, index, {vectors.begin * kernels_.lanes, std::min(vectors.end * kernels_.lanes, p_.n)}, rows,
               scratch);
    });
  }

 private:
  void run_part(const RunArgs& args, int64_t index, Range columns, Range rows, std::byte* scratch) const {
    const Matrix a = matrix_at(args.in[0], p_.batch, index), b = matrix_at(args.in[1], p_.batch, index);
    const Matrix dst = matrix_at(args.out, p_.batch, index);
    const Matrix residual = residual_ ? matrix_at(args.in[2], p_.batch, index) : Matrix();
    GemmArgs call = gemm_;
    call.m = static_cast<int>(rows.end - rows.begin);
    call.a = a.as<float>(rows.begin);
    call.a_stride = a.stride;
    if (p_.transpose_a) {
      auto* to = reinterpret_cast<float*>(scratch + columns_);
      transpose_into(a.as<float>() + rows.begin, a.stride, p_.k, call.m, to);
      call.a = to;
      call.a_stride = p_.k;
    }
    call.dst_stride = dst.stride;
    auto* packed = reinterpret_cast<float*>(scratch);
    call.b = packed;
    for (int64_t column = columns.begin; column < columns.end; column += strip_) {
      call.n = static_cast<int>(std::min<int64_t>(strip_, columns.end - column));
      const int panels = gemm_panels(call.n, kernels_.lanes, call.tiling.panel);
      kernels_.pack_b(call.n, call.k, call.tiling.panel, b.as<float>() + column * (p_.transpose_b ? b.stride : 1),
                      b.stride, p_.transpose_b, 0, panels, packed);
      call.dst = dst.as<float>(rows.begin) + column;
      if (residual_) {
        // The kernel wants the output's stride; where the residual has another, it goes row by row.
        const float* from = residual.as<float>(rows.begin) + column;
        if (residual.stride != dst.stride) {
          run_rows(call, panels, from, residual.stride, scratch + columns_ + transposed_);
          continue;
        }
        call.epilogue.residual = from;
      }
      kernels_.run(call, 0, panels, 0, call.m, scratch + columns_ + transposed_);
    }
  }

  void run_rows(GemmArgs call, int panels, const float* residual, int64_t stride, std::byte* scratch) const {
    const int rows = call.m;
    call.m = 1;
    auto* dst = static_cast<float*>(call.dst);
    for (int row = 0; row < rows; ++row, call.a += call.a_stride, dst += call.dst_stride) {
      call.dst = dst;
      call.epilogue.residual = residual + row * stride;
      kernels_.run(call, 0, panels, 0, 1, scratch);
    }
  }

  const GemmKernels& kernels_;
  MatmulParams p_;
  int64_t strip_;  // columns of b packed at a time
  GemmArgs gemm_;
  size_t columns_ = 0, transposed_ = 0;  // bytes of a task
};

class GemmMatmul final : public Routine {
 public:
  explicit GemmMatmul(Isa isa)
      : Routine({.layer_type = "matmul",
                 .algorithm = "gemm",
                 .isa = isa,
                 .in = f32_nchw.with(Layout::nchw().with_strides()),
                 .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    const MatmulParams p = matmul_params(*problem.layer, problem.in[0], problem.in[1]);
    return check_gemm_sizes(p.m, p.n, p.k);
  }

  std::vector<std::string> param_names() const override { return GemmStripParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const MatmulParams p = matmul_params(*problem.layer, problem.in[0], problem.in[1]);
    const int64_t budget = l2_bytes() / 2;
    const int64_t fit = budget / (std::max<int64_t>(p.k, 1) * 4) / gemm_strip * gemm_strip;
    const int strip = static_cast<int>(std::clamp<int64_t>(fit, gemm_strip, 20 * gemm_strip));
    return gemm_strip_choices(strip, p.m > p.n ? 0 : 1, problem.threads);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedMatmul>(problem, *gemm_kernels(info().isa), checked_strip(tuning));
  }
};

}  // namespace

void matmul_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<GemmMatmul>(isa);
}

}  // namespace softneuro
