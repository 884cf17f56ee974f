// batch_norm in every layout, as a scale and a shift per channel.
#include <cmath>

#include "layers/scale_shift/pointwise.h"
#include "layers/weights/weights_check.h"

namespace softneuro {
namespace {

class BatchNormPointwise final : public ScaleShiftRoutine {
  using ScaleShiftRoutine::ScaleShiftRoutine;

  void values(const Layer& layer, std::span<float> scale, std::span<float> shift) const override {
    const auto read = [&](const char* role) {
      const Constant* weight = layer.find_weight(role);
      return weight == nullptr ? nullptr : (*weight)->values();
    };
    const auto mean = read("mean"), variance = read("variance"), weight = read("weight"), bias = read("bias");
    const double eps = epsilon(layer);
    for (size_t c = 0; c < scale.size(); ++c) {
      const double factor = (weight ? double{weight.get()[c]} : 1.0) / std::sqrt(double{variance.get()[c]} + eps);
      scale[c] = static_cast<float>(factor);
      shift[c] = static_cast<float>((bias ? double{bias.get()[c]} : 0.0) - double{mean.get()[c]} * factor);
    }
  }
};

}  // namespace

void batch_norm_pointwise(RoutineList& list) {
  for (Isa isa : all_isas())
    for (const Schema& schema : vector_schemas(isa)) list.add<BatchNormPointwise>("batch_norm", isa, schema);
}

}  // namespace softneuro
