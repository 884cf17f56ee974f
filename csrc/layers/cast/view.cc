// Integers that come as float32, which an adapt makes of them, are reals already.
#include "layers/cast/cast.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class CastView final : public ViewRoutine {
 public:
  explicit CastView(const Layout& layout) : ViewRoutine("cast", "view", layout, layout) {}
  Refusal check(const Problem& problem) const override {
    if (cast_type(*problem.layer) != DType::float32) return "it is not to reals";
    return refuse_post_ops(problem);
  }
};

}  // namespace

void cast_view_routines(RoutineList& list) {
  for (const Layout& layout : all_layouts()) list.add<CastView>(layout);
}

}  // namespace softneuro
