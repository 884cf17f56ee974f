// Reshapes that leave every element where it is, so that a classifier's head or a change of the spatial dimensions
// alone needs no copy in any layout.
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class ReshapeView final : public ViewRoutine {
 public:
  ReshapeView(DType dtype, const Layout& from, const Layout& to) : ViewRoutine("reshape", "view", from, to, dtype) {}

  Refusal check(const Problem& problem) const override {
    const Shape &in = problem.in[0].shape, &out = problem.out().shape;
    const Layout &from = info().in.layout, &to = info().out.layout;
    const bool same_channels = from == to && in.rank() >= 2 && out.rank() >= 2 && in[0] == out[0] && in[1] == out[1];
    if (!same_channels && !(row_major(in, from) && row_major(out, to))) return "elements change their order";
    return refuse_post_ops(problem);
  }
};

// An axis cut in several, or one of size one left out: whatever the axes' strides are, the new ones follow from them.
class ReshapeStrides final : public ViewRoutine {
 public:
  ReshapeStrides() : ViewRoutine("reshape", "strides", Layout::nchw().with_strides(), Layout::nchw().with_strides()) {}

  Refusal check(const Problem& problem) const override {
    if (pieces(problem.in[0].shape, problem.out().shape).empty()) return "axes are joined";
    return refuse_post_ops(problem);
  }
  Strides view_strides(const Problem& problem, const Strides& in) const override {
    const Shape& out = problem.out().shape;
    const std::vector<int> of = pieces(problem.in[0].shape, out);
    Strides strides{};
    for (int axis = out.rank(); axis-- > 0;) {
      const auto i = static_cast<size_t>(axis);
      const bool inner = axis + 1 < out.rank() && of[i + 1] == of[i];
      strides[i] = inner ? strides[i + 1] * out[axis + 1] : in[static_cast<size_t>(of[i])];
    }
    return strides;
  }

 private:
  // By axis of the output the input's that it is a piece of; empty if it is not so.
  static std::vector<int> pieces(const Shape& in, const Shape& out) {
    if (in.elements() == 0) return {};
    std::vector<int> of;
    int64_t left = 1;
    for (int axis = 0, from = -1; axis < out.rank(); ++axis) {
      while (left == 1 && from + 1 < in.rank()) {
        left = in[++from];
        if (out[axis] == 1) break;
      }
      if (from < 0 || left % out[axis] != 0) return {};
      left /= out[axis];
      of.push_back(from);
      if (left == 1 && axis + 1 == out.rank() && in.product(from + 1, in.rank()) != 1) return {};
    }
    return left == 1 ? of : std::vector<int>{};
  }
};

}  // namespace

void reshape_view_routines(RoutineList& list) {
  for (const Schema& from : moved_schemas()) {
    for (const Schema& to : moved_schemas()) {
      const bool plain = from.layout == Layout::nchw() || to.layout == Layout::nchw();
      if (from.dtype == to.dtype && (from == to || plain)) list.add<ReshapeView>(from.dtype, from.layout, to.layout);
    }
  }
  for (const Schema& schema : whole_schemas()) list.add<ReshapeView>(schema.dtype, schema.layout, schema.layout);
  list.add<ReshapeStrides>();
}

}  // namespace softneuro
