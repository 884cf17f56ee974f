#include "layers/image_conv/image_conv.h"

#include <vector>

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/image_conv/routines.inc"
#include "layers/contract/collect.inc"

ImageConvStages image_conv_stages(const Layer& layer, const TensorDesc& in) {
  if (!is_bytes(in)) throw Error("the input must be integers from 0 to 255, not " + in.str());
  ImageConvStages stages;
  stages.conv.type = "conv2d";
  stages.conv.set_weight("weight", layer.weight("conv_weight"));
  if (const Constant* bias = layer.find_weight("conv_bias")) stages.conv.set_weight("bias", *bias);
  stages.conv.attrs = layer.attrs;
  stages.conv.post = layer.post;
  stages.image.shape = in.shape;
  const Conv2dParams p = stages.params();
  const Shape& values = layer.weight("values")->shape();
  if (values != Shape{p.c, byte_values}) {
    throw Error("values has shape " + values.str() + ", not " + Shape{p.c, byte_values}.str());
  }
  return stages;
}

void set_conv(Layer& stage, const Constant* values, const Constant& weight, const Constant* bias) {
  const std::string prefix = values != nullptr ? "conv_" : "";
  stage.type = values != nullptr ? "image_conv" : "conv2d";
  if (values != nullptr) stage.set_weight("values", *values);
  stage.set_weight(prefix + "weight", weight);
  if (bias != nullptr) stage.set_weight(prefix + "bias", *bias);
}

Conv2dParams conv_params(const Layer& stage, const TensorDesc& in) {
  return stage.type == "image_conv" ? image_conv_stages(stage, in).params() : conv2d_params(stage, in);
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  expect_inputs(in, 1);
  const ImageConvStages stages = image_conv_stages(layer, in[0]);
  return conv2d_layer().infer(stages.conv, {&stages.image, 1});
}

void reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Shape& shape = in[0].shape;
  const ImageConvStages stages = image_conv_stages(layer, desc_of(shape, DType::uint8));
  const std::vector<double> values = reference_weight(layer, "values");
  std::vector<double> reals(static_cast<size_t>(shape.elements()));
  const int64_t plane = shape[2] * shape[3];
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const auto value = static_cast<int64_t>(in[0].data[i]);
    reals[static_cast<size_t>(i)] = values[static_cast<size_t>(i / plane % shape[1] * byte_values + value)];
  }
  const RefTensor image{shape, reals.data()};
  // The layer's own post-ops are applied to the whole's result.
  conv2d_layer().reference(stages.conv, {&image, 1}, {&out, 1});
}

}  // namespace

const LayerDef& image_conv_layer() {
  static constexpr LayerDef def{"image_conv", infer, one_output<reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
