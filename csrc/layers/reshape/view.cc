// Reshapes that leave every element where it is, so that a classifier's head or a change of the spatial dimensions
// alone needs no copy in any layout.
#include "layers/moving.h"

namespace softneuro {
namespace {

class ReshapeView final : public ViewRoutine {
 public:
  ReshapeView(const Layout& from, const Layout& to) : ViewRoutine("reshape", "view", from, to) {}

  Refusal check(const Problem& problem) const override {
    const Shape &in = problem.in[0].shape, &out = problem.out.shape;
    const Layout &from = info().in.layout, &to = info().out.layout;
    if (!layout_fits(in, from) || !layout_fits(out, to)) return "a layout does not fit the rank";
    const bool same_channels = from == to && in.rank() >= 2 && out.rank() >= 2 && in[0] == out[0] && in[1] == out[1];
    if (!same_channels && !(row_major(in, from) && row_major(out, to))) return "elements change their order";
    return refuse_post_ops(problem);
  }
};

}  // namespace

void reshape_view_routines(RoutineList& list) {
  for (const Layout& from : all_layouts()) {
    for (const Layout& to : all_layouts()) {
      if (from == to || from == Layout::nchw() || to == Layout::nchw()) list.add<ReshapeView>(from, to);
    }
  }
}

}  // namespace softneuro
