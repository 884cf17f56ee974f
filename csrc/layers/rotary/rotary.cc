#include "layers/rotary/rotary.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/rotary/routines.inc"
#include "layers/contract/collect.inc"

void check_rotary(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({});
  expect_no_weights(layer);
  expect_inputs(in, 3);
  const Shape& x = in[0].shape;
  expect_rank(x, 4);
  if (x[3] % 2 != 0) throw Error("rows of " + x.str() + " have no halves");
  for (const TensorDesc& angle : in.subspan(1)) {
    expect_rank(angle.shape, 4);
    bool fits = angle.shape[3] == x[3];
    for (int axis = 0; axis < 3; ++axis) fits = fits && (angle.shape[axis] == 1 || angle.shape[axis] == x[axis]);
    if (!fits) throw Error("shape " + angle.shape.str() + " does not broadcast to " + x.str() + " with whole rows");
  }
}

static OutputDescs infer_rotary(const Layer& layer, std::span<const TensorDesc> in) {
  check_rotary(layer, in);
  return TensorDesc{in[0].shape};
}

const LayerDef& rotary_layer() {
  static constexpr LayerDef def{"rotary", infer_rotary, one_output<rotary_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
