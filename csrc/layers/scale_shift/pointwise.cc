#include "layers/scale_shift/pointwise.h"

namespace softneuro {
namespace {

class ChannelRoutine final : public Routine {
 public:
  ChannelRoutine(const ChannelOp& op, Isa isa, const Schema& schema)
      : Routine(pointwise_info(op.layer_type, isa, schema)), op_(op) {}

  Refusal check(const Problem&) const override { return {}; }

  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing;
    for (const char* name : op_.constants) add_in_layout(packing, name, packed_shape(problem), packed_layout(problem));
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const auto values = op_.values(*problem.layer);
    for (size_t i = 0; i < values.size(); ++i) {
      const std::vector<float> floats(values[i].begin(), values[i].end());
      pack_in_layout(floats.data(), packed_shape(problem), packed_layout(problem), to, op_.constants[i]);
    }
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    PointwiseJob job = pointwise_job(problem, info());
    job.op = op_.op;
    const float* const first = packed->at<float>(op_.constants.front());
    job.b = {is_number(problem) ? Shape{} : channel_shape(values(problem), job.out.rank()), -1, first};
    job.c_offset = packed->at<float>(op_.constants.back()) - first;
    job.packed = std::move(packed);
    return prepare_pointwise(std::move(job));
  }

 private:
  static int64_t values(const Problem& problem) { return problem.layer->weights.front().second->elements(); }
  // A single constant of one value is a number in every layout. With a second one, which is added, padding lanes would
  // not come to zero.
  bool is_number(const Problem& problem) const { return op_.constants.size() == 1 && values(problem) == 1; }
  Shape packed_shape(const Problem& problem) const {
    return is_number(problem) ? Shape{1} : channel_shape(values(problem), 2);
  }
  Layout packed_layout(const Problem& problem) const {
    return is_number(problem) || !info().out.layout.is_blocked() ? Layout::nchw() : info().out.layout;
  }

  ChannelOp op_;
};

}  // namespace

void add_channel_routines(RoutineList& list, const ChannelOp& op) {
  for (Isa isa : all_isas())
    for (const Schema& schema : vector_schemas(isa)) list.add<ChannelRoutine>(op, isa, schema);
}

void scale_shift_pointwise(RoutineList& list) {
  const auto values = [](const Layer& layer) {
    return ChannelConstants{reference_weight(layer, "scale"), reference_weight(layer, "shift")};
  };
  add_channel_routines(list, {"scale_shift", ElementwiseOp::scale_shift, {"scale", "shift"}, values});
}

}  // namespace softneuro
