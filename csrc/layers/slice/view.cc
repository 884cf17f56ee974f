// Slices whose elements lie together in the input's memory.
#include "layers/shared/moving.h"
#include "layers/slice/slice.h"

namespace softneuro {
namespace {

class SliceView final : public ViewRoutine {
 public:
  explicit SliceView(const Schema& schema) : ViewRoutine("slice", "view", schema) {}

  Refusal check(const Problem& problem) const override {
    const Shape& in = problem.in[0].shape;
    const Layout& layout = info().in.layout;
    const SliceParams p = slice_params(*problem.layer, in);
    if (p.step != 1 && problem.out().shape[p.axis] > 1) return "elements lie apart";
    if (p.axis > 0) {
      const AxisSplit split = split_axis(in, layout, p.axis);
      if (in[0] != 1 || split.outer != 1) return "elements lie apart";
      if (p.start % split.unit != 0 || (p.end % split.unit != 0 && p.end != in[p.axis])) {
        return "begins or ends within a channel block";
      }
    }
    return refuse_post_ops(problem);
  }

  int64_t view_offset(const Problem& problem, const Strides&) const override {
    const Shape& in = problem.in[0].shape;
    const SliceParams p = slice_params(*problem.layer, in);
    // An empty slice may begin at the end; its memory is never touched.
    if (problem.out().shape.elements() == 0) return 0;
    if (p.axis == 0) return p.start * (physical_elements(in, info().in.layout) / in[0]);
    const AxisSplit split = split_axis(in, info().in.layout, p.axis);
    return p.start / split.unit * split.inner;
  }
};

// Parts of rows, every other row and the like, as a blob whose axes have strides of their own.
class SliceStrides final : public ViewRoutine {
 public:
  SliceStrides(const Layout& layout, bool strided)
      : ViewRoutine("slice", "strides", layout.with_strides(strided), layout.with_strides()) {}

  Refusal check(const Problem& problem) const override {
    const int rank = problem.out().shape.rank();
    const SliceParams p = slice_params(*problem.layer, problem.in[0].shape);
    if (p.step != 1 && memory_order(rank, info().in.layout).back() == p.axis) return "elements lie apart";
    return refuse_post_ops(problem);
  }
  int64_t view_offset(const Problem& problem, const Strides& in) const override {
    const SliceParams p = slice_params(*problem.layer, problem.in[0].shape);
    return problem.out().shape.elements() == 0 ? 0 : p.start * in[static_cast<size_t>(p.axis)];
  }
  Strides view_strides(const Problem& problem, const Strides& in) const override {
    const SliceParams p = slice_params(*problem.layer, problem.in[0].shape);
    Strides strides = in;
    strides[static_cast<size_t>(p.axis)] *= p.step;
    return strides;
  }
};

}  // namespace

void slice_view_routines(RoutineList& list) {
  for (const Schema& schema : moved_schemas()) list.add<SliceView>(schema);
  for (const Schema& schema : whole_schemas()) list.add<SliceView>(schema);
  for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) {
    for (const bool strided : {false, true}) list.add<SliceStrides>(layout, strided);
  }
}

}  // namespace softneuro
