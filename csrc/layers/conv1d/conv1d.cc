#include "layers/conv1d/conv1d.h"

#include "layers/contract/registry.h"
#include "layers/contract/routine.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

#define SN_ROUTINES "layers/conv1d/routines.inc"
#include "layers/contract/collect.inc"

void conv1d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  if (in.size() != 1) throw Error("conv1d takes one input, not " + std::to_string(in.size()));
  if (in[0].shape.rank() != 3) throw Error("the input must have 3 axes, not shape " + in[0].shape.str());
  const Conv2dParams p = conv2d_params(conv1d_as_conv2d(layer), {with_height_one(in[0].shape)});
  return TensorDesc{Shape{p.n, p.k, p.ow}};
}

}  // namespace

Shape with_height_one(const Shape& shape) { return Shape{shape[0], shape[1], 1, shape[2]}; }

// A weight of three axes with one more.
static Constant with_height_one(const Constant& weight) {
  TensorDesc desc = weight->desc();
  desc.shape = with_height_one(desc.shape);
  if (desc.quantization != nullptr && desc.quantization->axis == 2) {
    auto moved = std::make_shared<Quantization>(*desc.quantization);
    moved->axis = 3;
    desc.quantization = std::move(moved);
  }
  return std::make_shared<const ConstantData>(weight, std::move(desc));
}

Layer conv1d_as_conv2d(const Layer& layer) {
  layer.attrs.expect_only({"stride", "padding", "dilation", "groups"});
  const auto stride = sized_integers(layer.attrs, "stride", 1, 1, 1);
  const auto padding = sized_integers(layer.attrs, "padding", 2, 0, 0);
  const auto dilation = sized_integers(layer.attrs, "dilation", 1, 1, 1);
  const Constant weight = layer.weight("weight");
  if (weight->shape().rank() != 3) throw Error("weight must have 3 axes, not shape " + weight->shape().str());

  Layer flat;
  flat.name = layer.name;
  flat.type = "conv2d";
  flat.attrs.set("stride", std::vector<int64_t>{1, stride[0]});
  flat.attrs.set("padding", std::vector<int64_t>{0, padding[0], 0, padding[1]});
  flat.attrs.set("dilation", std::vector<int64_t>{1, dilation[0]});
  flat.attrs.set("groups", layer.attrs.integer("groups", 1));
  flat.set_weight("weight", with_height_one(weight));
  if (const Constant* bias = layer.find_weight("bias")) flat.set_weight("bias", *bias);
  flat.post = layer.post;
  flat.inputs = layer.inputs;
  flat.outputs = layer.outputs;
  return flat;
}

const LayerDef& conv1d_layer() {
  static const LayerDef def{"conv1d", infer, one_output<conv1d_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
