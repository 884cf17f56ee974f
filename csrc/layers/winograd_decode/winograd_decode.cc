#include "layers/winograd_decode/winograd_decode.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

#define SN_ROUTINES "layers/winograd_decode/routines.inc"
#include "layers/contract/collect.inc"

void winograd_decode_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  expect_inputs(in, 1);
  const WinogradShape s = winograd_decode_shape(layer, in[0]);
  return TensorDesc{{s.images, s.out_channels, s.out_h, s.out_w}};
}

}  // namespace

WinogradShape winograd_decode_shape(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({"kernel", "tile", "output_size"});
  expect_rank(in.shape, 3);
  const auto out = fixed_list<2>("output_size", layer.attrs.integers("output_size"), 1);
  WinogradShape s = winograd_stage_shape(layer, 1, out[0], out[1]);
  if (in.shape[0] != s.positions() || in.shape[1] % s.tiles() != 0) {
    throw Error("an input of shape " + in.shape.str() + " does not hold " + std::to_string(s.positions()) +
                " positions of images of " + std::to_string(s.tiles()) + " tiles");
  }
  s.images = static_cast<int>(in.shape[1] / s.tiles());
  s.out_channels = static_cast<int>(in.shape[2]);
  check_bias(layer, s.out_channels);
  return s;
}

const LayerDef& winograd_decode_layer() {
  static const LayerDef def{"winograd_decode", infer, one_output<winograd_decode_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
