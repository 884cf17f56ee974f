#include "layers/conv2d_pair/conv2d_pair.h"

#include <vector>

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/conv2d_pair/routines.inc"
#include "layers/contract/collect.inc"

namespace {

Layer stage_of(const Layer& layer, const std::string& role) {
  Layer stage;
  stage.type = "conv2d";
  stage.set_weight("weight", layer.weight(role + "_weight"));
  if (const Constant* bias = layer.find_weight(role + "_bias")) stage.set_weight("bias", *bias);
  for (const char* name : {"stride", "padding", "dilation", "groups"}) {
    if (const AttrValue* value = layer.attrs.find(role + "_" + name)) stage.attrs.set(name, *value);
  }
  return stage;
}

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  expect_inputs(in, 1);
  const Conv2dParams p = conv2d_pair_stages(layer, in[0]).p2;
  return TensorDesc{Shape{p.n, p.k, p.oh, p.ow}};
}

void reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Conv2dPairStages stages = conv2d_pair_stages(layer, {in[0].shape});
  std::vector<double> memory(static_cast<size_t>(stages.between.shape.elements()));
  const RefTensor between{stages.between.shape, memory.data()};
  run_reference(conv2d_layer(), stages.first, in, {&between, 1});
  // The layer's own post-ops are applied to the whole's result.
  conv2d_layer().reference(stages.second, {&between, 1}, {&out, 1});
}

}  // namespace

Conv2dPairStages conv2d_pair_stages(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({"first_stride", "first_padding", "first_dilation", "first_groups", "first_function",
                           "first_a", "first_b", "second_stride", "second_padding", "second_dilation",
                           "second_groups"});
  Conv2dPairStages stages;
  stages.first = stage_of(layer, "first");
  Activation& activation = stages.first.post.activation;
  activation.kind = parse_activation(layer.attrs.text("first_function", "none"));
  activation.a = static_cast<float>(layer.attrs.real("first_a", 0));
  activation.b = static_cast<float>(layer.attrs.real("first_b", 0));
  stages.second = stage_of(layer, "second");
  stages.p1 = conv2d_params(stages.first, in);
  stages.between = {Shape{stages.p1.n, stages.p1.k, stages.p1.oh, stages.p1.ow}};
  stages.p2 = conv2d_params(stages.second, stages.between);
  return stages;
}

Refusal check_conv2d_pair(const Conv2dPairStages& stages) {
  const auto dense = [](const Layer& stage) { return stage.weight("weight")->traits().str().empty(); };
  if (dense(stages.first) && dense(stages.second)) return "neither weight is sparse";
  if (Refusal sizes = check_int_sizes(stages.p1); !sizes.accepted()) return sizes;
  return check_int_sizes(stages.p2);
}

const LayerDef& conv2d_pair_layer() {
  static constexpr LayerDef def{"conv2d_pair", infer, one_output<reference>, collect_routines};
  return def;
}

}  // namespace softneuro
