// Rows x weights with fewer multiplications.
#include "layers/linear/linear.h"
#include "layers/products/strassen_routine.h"

namespace softneuro {
namespace {

class StrassenLinear final : public StrassenRoutine {
 public:
  explicit StrassenLinear(Isa isa) : StrassenRoutine("linear", isa, f32_nchw) {}

 private:
  Refusal is_product(const Problem&) const override { return {}; }
  MatrixView matrices(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    const Shape& shape = problem.in[0].shape;
    if (shape.rank() <= 2) return {1, p.rows, p.k, p.c, true};
    return {shape[0], shape[0] > 0 ? p.rows / shape[0] : 0, p.k, p.c, false};
  }
};

}  // namespace

void linear_strassen(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<StrassenLinear>(isa);
}

}  // namespace softneuro
