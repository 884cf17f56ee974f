#include "layers/dynamic_conv2d/dynamic_conv2d.h"

#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/dynamic_conv2d/routines.inc"
#include "layers/contract/collect.inc"

void dynamic_conv2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const Conv2dParams p = dynamic_conv2d_params(layer, only_input(in)).size;
  return TensorDesc{Shape{p.n, p.k, p.oh, p.ow}};
}

}  // namespace

Layer plain_conv2d(const Layer& layer) {
  Layer plain = layer;
  plain.type = "conv2d";
  for (const char* name : {"least", "most", "symmetric", "reciprocal", "eps"}) plain.attrs.erase(name);
  return plain;
}

DynamicConv2dParams dynamic_conv2d_params(const Layer& layer, const TensorDesc& in) {
  DynamicConv2dParams p;
  p.size = conv2d_params(plain_conv2d(layer), in);
  if (layer.weight("weight")->desc().quantization == nullptr) throw Error("the weight is not quantized");
  static_cast<DynamicSteps&>(p) = dynamic_steps(layer.attrs);
  return p;
}

const LayerDef& dynamic_conv2d_layer() {
  static const LayerDef def{"dynamic_conv2d", infer, one_output<dynamic_conv2d_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
