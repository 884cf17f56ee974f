#include "layers/look_up/look_up.h"
#include "layers/quantized/lut.h"

namespace softneuro {

void look_up_table_routines(RoutineList& list) {
  add_lut_routines(list, "look_up", [](const Layer& layer, double x) {
    double value = 0;
    const RefTensor in{Shape{1}, &x};
    look_up_reference(layer, {&in, 1}, {Shape{1}, &value});
    return value;
  });
}

}  // namespace softneuro
