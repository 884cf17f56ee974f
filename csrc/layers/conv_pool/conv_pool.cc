#include "layers/conv_pool/conv_pool.h"

#include <vector>

#include "layers/contract/registry.h"
#include "layers/contract/validate.h"
#include "layers/image_conv/image_conv.h"

namespace softneuro {

#define SN_ROUTINES "layers/conv_pool/routines.inc"
#include "layers/contract/collect.inc"

ConvPoolStages conv_pool_stages(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({"stride", "padding", "dilation", "groups", "conv_function", "conv_a", "conv_b",
                           "pool_function", "pool_kernel", "pool_stride", "pool_padding", "pool_dilation",
                           "pool_ceil_mode", "pool_count_include_pad"});
  ConvPoolStages stages;
  Layer &conv = stages.conv, &pool = stages.pool;
  set_conv(conv, layer.find_weight("values"), layer.weight("conv_weight"), layer.find_weight("conv_bias"));
  conv.post.activation.kind = parse_activation(layer.attrs.text("conv_function", "none"));
  conv.post.activation.a = static_cast<float>(layer.attrs.real("conv_a", 0));
  conv.post.activation.b = static_cast<float>(layer.attrs.real("conv_b", 0));
  for (const char* name : {"stride", "padding", "dilation", "groups"}) {
    if (const AttrValue* value = layer.attrs.find(name)) conv.attrs.set(name, *value);
  }
  pool.type = "pool2d";
  for (const char* name : {"function", "kernel", "stride", "padding", "dilation", "ceil_mode", "count_include_pad"}) {
    if (const AttrValue* value = layer.attrs.find(std::string("pool_") + name)) pool.attrs.set(name, *value);
  }
  stages.between = infer_outputs(layer_def(conv.type), conv, {&in, 1}).front();
  return stages;
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  expect_inputs(in, 1);
  const ConvPoolStages stages = conv_pool_stages(layer, in[0]);
  return pool2d_layer().infer(stages.pool, {&stages.between, 1});
}

void reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const bool bytes = layer.find_weight("values") != nullptr;
  const ConvPoolStages stages = conv_pool_stages(layer, desc_of(in[0].shape, bytes ? DType::uint8 : DType::float32));
  std::vector<double> memory(static_cast<size_t>(stages.between.shape.elements()));
  const RefTensor between{stages.between.shape, memory.data()};
  run_reference(layer_def(stages.conv.type), stages.conv, in, {&between, 1});
  // The layer's own post-ops are applied to the whole's result.
  pool2d_reference(stages.pool, {&between, 1}, out);
}

}  // namespace

const LayerDef& conv_pool_layer() {
  static constexpr LayerDef def{"conv_pool", infer, one_output<reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
