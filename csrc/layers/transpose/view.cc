// Transposes that leave every element where it is.
#include "layers/shared/moving.h"
#include "layers/transpose/transpose.h"

namespace softneuro {
namespace {

// With both layouts row-major: only axes of one element move. With channels last on one side, the layout is what the
// transpose makes of it: x[N,C,H,W] in nhwc is its own permutation 0,2,3,1 in nchw.
class TransposeView final : public ViewRoutine {
 public:
  TransposeView(DType dtype, const Layout& from, const Layout& to)
      : ViewRoutine("transpose", "view", from, to, dtype) {}

  Refusal check(const Problem& problem) const override {
    const Shape& in = problem.in[0].shape;
    const int rank = in.rank();
    const std::vector<int> perm = transpose_perm(*problem.layer, rank);
    const auto significant = [&](const Layout& layout, bool output) {
      std::vector<int> axes;  // of the input, in the order of memory
      for (int axis : memory_order(rank, layout)) {
        const int source = output ? perm[static_cast<size_t>(axis)] : axis;
        if (in[source] != 1) axes.push_back(source);
      }
      return axes;
    };
    if (significant(info().in.layout, false) != significant(info().out.layout, true))
      return "elements change their order";
    return refuse_post_ops(problem);
  }
};

// Any other order of the axes, as long as the innermost one stays: a blob whose axes have strides of their own.
class TransposeStrides final : public ViewRoutine {
 public:
  explicit TransposeStrides(bool strided)
      : ViewRoutine("transpose", "strides", Layout::nchw().with_strides(strided), Layout::nchw().with_strides()) {}

  Refusal check(const Problem& problem) const override {
    const int rank = problem.out().shape.rank();
    const std::vector<int> perm = transpose_perm(*problem.layer, rank);
    if (perm.back() != rank - 1) return "the innermost axis moves";
    return refuse_post_ops(problem);
  }
  Strides view_strides(const Problem& problem, const Strides& in) const override {
    Strides strides{};
    const std::vector<int> perm = transpose_perm(*problem.layer, problem.out().shape.rank());
    for (size_t axis = 0; axis < perm.size(); ++axis) strides[axis] = in[static_cast<size_t>(perm[axis])];
    return strides;
  }
};

}  // namespace

void transpose_view_routines(RoutineList& list) {
  for (const DType dtype : {DType::float32, DType::uint8, DType::qint8}) {
    for (const Layout& from : {Layout::nchw(), Layout::nhwc()}) {
      for (const Layout& to : {Layout::nchw(), Layout::nhwc()}) list.add<TransposeView>(dtype, from, to);
    }
  }
  for (const bool strided : {false, true}) list.add<TransposeStrides>(strided);
}

}  // namespace softneuro
