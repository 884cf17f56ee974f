#include "layers/look_up/look_up.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/look_up/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_look_up(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_inputs(in, 1);
  for (const char* role : {"points", "values"}) {
    const Shape& shape = layer.weight(role)->shape();
    if (shape != Shape{table_values}) throw Error(std::string(role) + " must have 256 elements, not " + shape.str());
  }
  return TensorDesc{in[0].shape};
}

const LayerDef& look_up_layer() {
  static constexpr LayerDef def{"look_up", infer_look_up, one_output<look_up_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
