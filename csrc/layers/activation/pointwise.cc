// activation in every layout: the function is the same for all elements, so the layout only matters for padding lanes.
#include "layers/shared/pointwise.h"

#include "layers/activation/activation.h"
#include "layers/quantized/lut.h"

namespace softneuro {
namespace {

class ActivationPointwise final : public Routine {
 public:
  ActivationPointwise(Isa isa, const Schema& schema) : Routine(pointwise_info("activation", isa, schema)) {}

  Refusal check(const Problem&) const override { return {}; }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    PointwiseJob job = pointwise_job(problem, info());
    job.function = activation_params(*problem.layer);
    return prepare_pointwise(std::move(job));
  }
};

}  // namespace

void activation_pointwise(RoutineList& list) {
  for (Isa isa : all_isas())
    for (const Schema& schema : vector_schemas(isa)) list.add<ActivationPointwise>(isa, schema);
}

void activation_table(RoutineList& list) {
  add_lut_routines(list, "activation",
                   [](const Layer& layer, double x) { return reference_activation(activation_params(layer), x); });
}

}  // namespace softneuro
