// Between float32 and sixteen bits of fixed point.
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

template <typename From, typename To>
class AdaptFixed final : public Routine {
 public:
  AdaptFixed()
      : Routine({.layer_type = "adapt",
                 .algorithm = "fixed",
                 .isa_in_name = false,
                 .in = f32_nchw.with(dtype_of<From>),
                 .out = f32_nchw.with(dtype_of<To>)}) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([count = problem.out().shape.elements()](const RunArgs& args) {
      for (int64_t i = 0; i < count; ++i)
        args.out.as<To>()[i] = element_from<To>(element_value(args.in[0].as<From>()[i]));
    });
  }
};

}  // namespace

void adapt_fixed16(RoutineList& list) {
  list.add<AdaptFixed<float, Fixed16>>();
  list.add<AdaptFixed<Fixed16, float>>();
}

}  // namespace softneuro
