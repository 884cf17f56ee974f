#include "layers/strassen_routine.h"

#include <algorithm>

#include "layers/gemm_tasks.h"
#include "layers/packed_floats.h"
#include "layers/strassen.h"

namespace softneuro {
namespace {

constexpr int deepest = 3;
constexpr size_t max_scratch = size_t{256} << 20;

StrassenShape shape_of(const MatrixView& view, int depth) { return {view.m, view.n, view.k, depth}; }

class PreparedStrassen final : public Prepared {
 public:
  PreparedStrassen(const Problem& problem, const MatrixView& view, const StrassenGemm& gemm, const float* bias,
                   std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), view_(view), gemm_(gemm), bias_(bias), residual_(problem.layer->post.residual) {}

  WorkspaceSize workspace() const override { return {.task = gemm_.scratch_bytes(), .tasks = gemm_.tasks()}; }

  void run(const RunArgs& args) const override {
    const TensorView& residual = args.in[residual_ ? 1 : 0];
    const auto stride = [&](const TensorView& blob, int64_t dense) {
      return view_.rows_are_images ? blob.strides[0] : dense;
    };
    args.parallel_for(gemm_.tasks(), [&](int64_t task) {
      for (int64_t image = 0; image < view_.images; ++image) {
        StrassenArgs call;
        call.a = args.in[0].f32() + image * args.in[0].strides[0];
        call.a_stride = stride(args.in[0], view_.k);
        call.dst = args.out.f32() + image * args.out.strides[0];
        call.dst_stride = stride(args.out, view_.n);
        call.bias = bias_;
        if (residual_) {
          call.residual = residual.f32() + image * residual.strides[0];
          call.residual_stride = stride(residual, view_.n);
        }
        gemm_.run(call, task, args.workspace.task(task));
      }
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  MatrixView view_;
  StrassenGemm gemm_;
  const float* bias_;
  bool residual_;
};

}  // namespace

StrassenRoutine::StrassenRoutine(std::string layer_type, Isa isa, Schema schema)
    : Routine({.layer_type = std::move(layer_type),
               .algorithm = "strassen",
               .isa = isa,
               .in = schema,
               .out = schema,
               .error = ErrorClass::strassen,
               .spreads_nonfinite = true}) {}

Refusal StrassenRoutine::check(const Problem& problem) const {
  const Refusal product = is_product(problem);
  if (!product.accepted()) return product;
  const MatrixView view = matrices(problem);
  const Refusal sizes = check_gemm_sizes(view.m, view.n, view.k);
  if (!sizes.accepted()) return sizes;
  if (!strassen_saves(view.m, view.n, view.k)) return "too small: more additions than multiplications saved";
  const StrassenGemm gemm(info().isa, shape_of(view, strassen_depth(view.m, view.n, view.k)), 1, nullptr, {},
                          problem.threads);
  if (gemm.scratch_bytes() * static_cast<size_t>(gemm.tasks()) > max_scratch) return "scratch beyond 256 MiB";
  return {};
}

std::vector<Tuning> StrassenRoutine::tunings(const Problem& problem) const {
  const MatrixView view = matrices(problem);
  const int depth = strassen_depth(view.m, view.n, view.k);
  std::vector<Tuning> list{{depth, 2}};
  if (depth > 1) list.push_back({depth, 3}), list.push_back({depth - 1, 2});
  return list;
}

MatrixView StrassenRoutine::checked_view(const Problem& problem, const Tuning& tuning) const {
  if (tuning[0] < 1 || tuning[0] > deepest) {
    throw Error("depth must be in [1, " + std::to_string(deepest) + "], not " + std::to_string(tuning[0]));
  }
  return matrices(problem);
}

size_t StrassenRoutine::packed_bytes(const Problem& problem, const Tuning& tuning) const {
  const StrassenShape shape = shape_of(checked_view(problem, tuning), tuning[0]);
  return strassen_packed_size(*gemm_kernels(info().isa), shape) * sizeof(float);
}

// The product's parts, then the bias.
std::shared_ptr<const Packed> StrassenRoutine::pack(const Problem& problem, const Tuning& tuning) const {
  const GemmKernels& kernels = *gemm_kernels(info().isa);
  const StrassenShape shape = shape_of(checked_view(problem, tuning), tuning[0]);
  const size_t size = strassen_packed_size(kernels, shape);
  const Constant* bias = problem.layer->find_weight("bias");
  auto packed = std::make_shared<PackedFloats>(static_cast<int64_t>(size) + (bias != nullptr ? shape.n : 0));
  const int panel = gemm_tiling(kernels, tuning[1]).panel;
  strassen_pack(kernels, shape, panel, problem.layer->weight("weight")->values().get(), packed->data());
  if (bias != nullptr) std::copy_n((*bias)->values().get(), shape.n, packed->data() + size);
  return packed;
}

std::unique_ptr<const Prepared> StrassenRoutine::prepare(const Problem& problem, const Tuning& tuning,
                                                         std::shared_ptr<const Packed> packed) const {
  const MatrixView view = checked_view(problem, tuning);
  const StrassenShape shape = shape_of(view, tuning[0]);
  const float* data = packed_floats(packed.get());
  const StrassenGemm gemm(info().isa, shape, tuning[1], data, problem.layer->post.activation, problem.threads);
  const bool bias = problem.layer->find_weight("bias") != nullptr;
  return std::make_unique<PreparedStrassen>(
      problem, view, gemm, bias ? data + strassen_packed_size(*gemm_kernels(info().isa), shape) : nullptr,
      std::move(packed));
}

double StrassenRoutine::expected_error(const Problem& problem, const Tuning& tuning) const {
  return strassen_error(shape_of(checked_view(problem, tuning), tuning[0]));
}

}  // namespace softneuro
