#include "layers/moving.h"

namespace softneuro {
namespace {

class IdentityView final : public ViewRoutine {
 public:
  explicit IdentityView(const Layout& layout) : ViewRoutine("identity", "view", layout, layout) {}
  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
};

}  // namespace

void identity_view_routines(RoutineList& list) {
  for (const Layout& layout : all_layouts()) list.add<IdentityView>(layout);
}

}  // namespace softneuro
