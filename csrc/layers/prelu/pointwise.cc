// prelu in every layout.
#include "layers/shared/pointwise.h"

namespace softneuro {
namespace {

class PreluPointwise final : public Routine {
 public:
  PreluPointwise(Isa isa, const Schema& schema) : Routine(pointwise_info("prelu", isa, schema)) {}

  Refusal check(const Problem&) const override { return {}; }

  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing;
    add_in_layout(packing, "weights", packed_shape(problem), packed_layout(problem));
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const auto values = problem.layer->weight("weight")->values();
    pack_in_layout(values.get(), packed_shape(problem), packed_layout(problem), to, "weights");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    PointwiseJob job = pointwise_job(problem, info());
    const int64_t weights = problem.layer->weight("weight")->elements();
    job.op = ElementwiseOp::prelu;
    job.b = {weights == 1 ? Shape{} : channel_shape(weights, job.out.rank()), -1, packed->at<float>("weights")};
    job.packed = std::move(packed);
    return prepare_pointwise(std::move(job));
  }

 private:
  // A single weight stays one number in every layout.
  static bool one(const Problem& problem) { return problem.layer->weight("weight")->elements() == 1; }
  static Shape packed_shape(const Problem& problem) {
    return one(problem) ? Shape{1} : channel_shape(problem.layer->weight("weight")->elements(), 2);
  }
  Layout packed_layout(const Problem& problem) const {
    return one(problem) || !info().out.layout.is_blocked() ? Layout::nchw() : info().out.layout;
  }
};

}  // namespace

void prelu_pointwise(RoutineList& list) {
  for (Isa isa : all_isas())
    for (const Schema& schema : vector_schemas(isa)) list.add<PreluPointwise>(isa, schema);
}

}  // namespace softneuro
