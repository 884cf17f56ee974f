#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class IdentityView final : public ViewRoutine {
 public:
  explicit IdentityView(const Schema& schema) : ViewRoutine("identity", "view", schema) {}
  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
};

}  // namespace

void identity_view_routines(RoutineList& list) {
  for (const Schema& schema : moved_schemas()) list.add<IdentityView>(schema);
  for (const Schema& schema : whole_schemas()) list.add<IdentityView>(schema);
}

}  // namespace softneuro
