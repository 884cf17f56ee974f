// Conversions between layouts that hold this shape's elements in the same order.
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class AdaptView final : public ViewRoutine {
 public:
  AdaptView(DType dtype, const Layout& from, const Layout& to) : ViewRoutine("adapt", "view", from, to, dtype) {}

  Refusal check(const Problem& problem) const override {
    const Shape& shape = problem.out().shape;
    const Layout &from = info().in.layout, &to = info().out.layout;
    if (!row_major(shape, from) || !row_major(shape, to)) return "elements change their order";
    return refuse_post_ops(problem);
  }
};

// What reads a part of a larger blob reads a whole one, too.
class AdaptToStrided final : public ViewRoutine {
 public:
  AdaptToStrided(DType dtype, const Layout& layout)
      : ViewRoutine("adapt", "view", layout, layout.with_strides(), dtype) {}
  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
};

}  // namespace

void adapt_view_routines(RoutineList& list) {
  for (const DType dtype : all_dtypes()) {
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) list.add<AdaptToStrided>(dtype, layout);
  }
  for (const Schema& from : moved_schemas()) {
    for (const Schema& to : moved_schemas()) {
      if (from != to && from.dtype == to.dtype) list.add<AdaptView>(from.dtype, from.layout, to.layout);
    }
  }
}

}  // namespace softneuro
