#include "layers/winograd_encode/winograd_encode.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/winograd_encode/routines.inc"
#include "layers/contract/collect.inc"

void winograd_encode_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  expect_inputs(in, 1);
  expect_no_weights(layer);
  const WinogradShape s = winograd_encode_shape(layer, in[0]);
  return TensorDesc{{s.positions(), int64_t{s.images} * s.tiles_h() * s.tiles_w(), s.in_channels}};
}

}  // namespace

WinogradShape winograd_encode_shape(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({"kernel", "tile", "padding"});
  expect_rank(in.shape, 4);
  const auto kernel = fixed_list<2>("kernel", layer.attrs.integers("kernel"), 1);
  const auto padding = fixed_list<4>("padding", layer.attrs.integers("padding", {0, 0, 0, 0}), 0);
  const int64_t out_h = in.shape[2] + padding[0] + padding[2] - kernel[0] + 1;
  const int64_t out_w = in.shape[3] + padding[1] + padding[3] - kernel[1] + 1;
  if (out_h < 1 || out_w < 1) throw Error("an image of shape " + in.shape.str() + " is smaller than the kernel");
  WinogradShape s = winograd_stage_shape(layer, in.shape[0], out_h, out_w);
  s.in_channels = static_cast<int>(in.shape[1]);
  s.h = static_cast<int>(in.shape[2]), s.w = static_cast<int>(in.shape[3]);
  s.pad_top = static_cast<int>(padding[0]), s.pad_left = static_cast<int>(padding[1]);
  return s;
}

const LayerDef& winograd_encode_layer() {
  static const LayerDef def{"winograd_encode", infer, one_output<winograd_encode_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
