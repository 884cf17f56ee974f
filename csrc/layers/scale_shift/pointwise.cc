// scale_shift in every layout.
#include <algorithm>
#include <vector>

#include "layers/scale_shift/pointwise.h"

namespace softneuro {

ScaleShiftRoutine::ScaleShiftRoutine(const char* layer_type, Isa isa, const Schema& schema)
    : Routine(pointwise_info(layer_type, isa, schema)) {}

Layout ScaleShiftRoutine::channels_layout() const {
  const Layout& layout = info().out.layout;
  return layout.is_blocked() ? layout : Layout::nchw();
}

Packing ScaleShiftRoutine::packing(const Problem& problem, const Tuning&) const {
  const Shape shape = channel_shape(problem.out().shape[1], 2);
  Packing packing;
  for (const char* name : {"scale", "shift"}) add_in_layout(packing, name, shape, channels_layout());
  return packing;
}

void ScaleShiftRoutine::pack(const Problem& problem, const Tuning&, Packed& to) const {
  const int64_t channels = problem.out().shape[1];
  std::vector<float> scale(static_cast<size_t>(channels)), shift(scale.size());
  values(*problem.layer, scale, shift);
  const Shape shape = channel_shape(channels, 2);
  pack_in_layout(scale.data(), shape, channels_layout(), to, "scale");
  pack_in_layout(shift.data(), shape, channels_layout(), to, "shift");
}

std::unique_ptr<const Prepared> ScaleShiftRoutine::prepare(const Problem& problem, const Tuning&,
                                                           std::shared_ptr<const Packed> packed) const {
  PointwiseJob job = pointwise_job(problem, info());
  const Shape shape = channel_shape(job.out[1], job.out.rank());
  job.op = ElementwiseOp::scale_shift;
  job.b = {shape, -1, packed->at<float>("scale")};
  job.c_offset = packed->at<float>("shift") - job.b.constant;
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
