// scale_shift in every layout.
#include <algorithm>
#include <array>
#include <vector>

#include "layers/scale_shift/scale_shift.h"

namespace softneuro {

ScaleShiftRoutine::ScaleShiftRoutine(const char* layer_type, Isa isa, const Schema& schema)
    : Routine({.layer_type = layer_type,
               .algorithm = "vector",
               .isa = isa,
               .in = schema,
               .out = schema,
               .inplace_input = 0}) {}

std::shared_ptr<const Packed> ScaleShiftRoutine::pack(const Problem& problem, const Tuning&) const {
  const int64_t channels = problem.out().shape[1];
  std::vector<float> scale(static_cast<size_t>(channels)), shift(scale.size());
  values(*problem.layer, scale, shift);
  const Layout& layout = info().out.layout;
  return pack_in_layout(std::array<const float*, 2>{scale.data(), shift.data()}, channel_shape(channels, 2),
                        layout.is_blocked() ? layout : Layout::nchw());
}

std::unique_ptr<const Prepared> ScaleShiftRoutine::prepare(const Problem& problem, const Tuning&,
                                                           std::shared_ptr<const Packed> packed) const {
  PointwiseJob job = pointwise_job(problem, info());
  const Shape shape = channel_shape(job.out[1], job.out.rank());
  job.op = ElementwiseOp::scale_shift;
  job.b = {shape, -1, packed_floats(packed.get())};
  job.c_offset = physical_elements(shape, job.layout);
  job.packed = std::move(packed);
  return prepare_pointwise(std::move(job));
}

namespace {

class ScaleShiftPointwise final : public ScaleShiftRoutine {
  using ScaleShiftRoutine::ScaleShiftRoutine;

  void values(const Layer& layer, std::span<float> scale, std::span<float> shift) const override {
    std::copy_n(layer.weight("scale")->values().get(), scale.size(), scale.begin());
    std::copy_n(layer.weight("shift")->values().get(), shift.size(), shift.begin());
  }
};

}  // namespace

void scale_shift_pointwise(RoutineList& list) {
  for (Isa isa : all_isas())
    for (const Schema& schema : vector_schemas(isa)) list.add<ScaleShiftPointwise>("scale_shift", isa, schema);
}

}  // namespace softneuro
