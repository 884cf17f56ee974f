#include "layers/adaptive_pool2d/adaptive_pool2d.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/pool2d/pool2d.h"

namespace softneuro {

#define SN_ROUTINES "layers/adaptive_pool2d/routines.inc"
#include "layers/contract/collect.inc"

static OutputDescs infer_adaptive_pool2d(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"function", "output_size"});
  const bool is_max = pool_is_max(layer.attrs.text("function"));
  expect_no_weights(layer);
  expect_inputs(in, 1);
  expect_rank(in[0].shape, 4);
  if (in[0].shape[2] == 0 || in[0].shape[3] == 0) throw Error("the image is empty: " + in[0].shape.str());
  const auto size = fixed_list<2>("output_size", layer.attrs.integers("output_size"), 0);
  TensorDesc out{Shape{in[0].shape[0], in[0].shape[1], size[0], size[1]}};
  if (is_max) out.quantization = in[0].quantization;
  return out;
}

const LayerDef& adaptive_pool2d_layer() {
  static constexpr LayerDef def{"adaptive_pool2d", infer_adaptive_pool2d, one_output<adaptive_pool2d_reference>,
                                collect_routines, Takes::selecting};
  return def;
}

}  // namespace softneuro
