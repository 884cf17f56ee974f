// prelu in every layout.
#include <array>

#include "layers/pointwise.h"

namespace softneuro {
namespace {

class PreluPointwise final : public Routine {
 public:
  PreluPointwise(Isa isa, const Schema& schema)
      : Routine({.layer_type = "prelu",
                 .algorithm = "vector",
                 .isa = isa,
                 .in = schema,
                 .out = schema,
                 .inplace_input = 0}) {}

  Refusal check(const Problem&) const override { return {}; }

  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning&) const override {
    const Constant& weight = problem.layer->weight("weight");
    const auto values = weight->values();
    // A single weight stays one number in every layout.
    const bool one = weight->elements() == 1;
    return pack_in_layout(std::array{values.get()}, one ? Shape{1} : channel_shape(weight->elements(), 2),
                          one || !info().out.layout.is_blocked() ? Layout::nchw() : info().out.layout);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    PointwiseJob job = pointwise_job(problem, info());
    const int64_t weights = problem.layer->weight("weight")->elements();
    job.op = ElementwiseOp::prelu;
    job.b = {weights == 1 ? Shape{} : channel_shape(weights, job.out.rank()), -1, packed_floats(packed.get())};
    job.packed = std::move(packed);
    return prepare_pointwise(std::move(job));
  }
};

}  // namespace

void prelu_pointwise(RoutineList& list) {
  for (Isa isa : all_isas())
    for (const Schema& schema : vector_schemas(isa)) list.add<PreluPointwise>(isa, schema);
}

}  // namespace softneuro
