#include "layers/pixel_shuffle/pixel_shuffle.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/pixel_shuffle/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_pixel_shuffle(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"factor"});
  expect_no_weights(layer);
  expect_inputs(in, 1);
  const Shape& x = in[0].shape;
  expect_rank(x, 4);
  const int64_t r = layer.attrs.integer("factor");
  if (r < 1 || r > 1024) throw Error("factor must be in [1, 1024], got " + std::to_string(r));
  if (x[1] % (r * r) != 0) {
    throw Error(std::to_string(x[1]) + " channels are not divisible by the square of factor " + std::to_string(r));
  }
  TensorDesc out = in[0];
  out.shape = Shape{x[0], x[1] / (r * r), x[2] * r, x[3] * r};
  return out;
}

const LayerDef& pixel_shuffle_layer() {
  static constexpr LayerDef def{"pixel_shuffle", infer_pixel_shuffle, one_output<pixel_shuffle_reference>,
                                collect_routines, Takes::moving};
  return def;
}

}  // namespace softneuro
