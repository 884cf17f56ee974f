#include "layers/shared/broadcast.h"
#include "layers/shared/moving.h"
#include "layers/transpose/permute.h"
#include "layers/transpose/transpose.h"

namespace softneuro {
namespace {

class TransposePermute final : public Routine {
 public:
  explicit TransposePermute(Isa isa)
      : Routine(vector_info("transpose", "permute", isa, Layout::nchw(), Layout::nchw())) {}
  TransposePermute() : Routine(moving_info("transpose", "permute", f32_nchw.with(DType::qint8))) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const Shape& in = problem.in[0].shape;
    const std::vector<int> perm = transpose_perm(*problem.layer, in.rank());
    return prepared_call([permutation = Permutation({in.begin(), in.end()}, perm, info().isa, problem.threads)](
                             const RunArgs& args) { permutation.run(args.in[0], args.out, args.parallel_for); });
  }
};

// Integers and booleans, which are few.
template <typename T>
class TransposeWhole final : public Routine {
 public:
  TransposeWhole() : Routine(moving_info("transpose", "elements", f32_nchw.with(dtype_of<T>))) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([perm = transpose_perm(*problem.layer, problem.in[0].shape.rank()),
                          threads = problem.threads](const RunArgs& args) {
      TensorView in = args.in[0];
      in.shape = args.out.shape;
      for (size_t axis = 0; axis < perm.size(); ++axis) {
        in.strides[axis] = args.in[0].strides[static_cast<size_t>(perm[axis])];
      }
      copy_elements<T>(in, args.out, threads, args.parallel_for);
    });
  }
};

}  // namespace

void transpose_permute_routines(RoutineList& list) {
  for (Isa isa : isas_best_first()) {
    if (transpose2d_kernel(isa) != nullptr) list.add<TransposePermute>(isa);
  }
  list.add<TransposePermute>();
  list.add<TransposeWhole<int64_t>>();
  list.add<TransposeWhole<int32_t>>();
  list.add<TransposeWhole<Bool>>();
}

}  // namespace softneuro
