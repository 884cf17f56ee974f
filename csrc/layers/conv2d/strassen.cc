// 1x1 convolution on channels-last blobs with fewer multiplications.
#include "layers/conv2d/shapes.h"
#include "layers/products/strassen_routine.h"

namespace softneuro {
namespace {

class StrassenConv2d final : public StrassenRoutine {
 public:
  explicit StrassenConv2d(Isa isa) : StrassenRoutine("conv2d", isa, f32_nhwc) {}

 private:
  Refusal is_product(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (!p.pointwise() || p.sh != 1 || p.sw != 1) return "not a 1x1 kernel without stride and padding";
    return p.groups == 1 ? Refusal() : Refusal("has groups");
  }
  MatrixView matrices(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return {p.n, p.oh * p.ow, p.k, p.c, false};
  }
};

}  // namespace

void conv2d_strassen(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<StrassenConv2d>(isa);
}

}  // namespace softneuro
