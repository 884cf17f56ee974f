#include "layers/activation/activation.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "layers/routine.h"
#include "layers/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/activation/routines.inc"
#include "layers/collect.inc"

void activation_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

Activation activation_params(const Layer& layer) {
  layer.attrs.expect_only({"function", "a", "b"});
  const std::string& name = layer.attrs.text("function");
  static constexpr std::string_view names[] = {
#define SN_NAME(name, formula) #name,
      SN_ACTIVATIONS(SN_NAME)
#undef SN_NAME
  };
  const auto* at = std::find(std::begin(names), std::end(names), name);
  if (at == std::end(names)) {
    throw Error("unknown activation '" + name + "'", {},
                "did you mean '" + std::string(nearest_name(name, names)) + "'?");
  }
  const Activation activation{static_cast<ActivationKind>(at - names), static_cast<float>(layer.attrs.real("a", 0)),
                              static_cast<float>(layer.attrs.real("b", 0))};
  if (std::isnan(activation.a) || std::isnan(activation.b)) throw Error("a param of activation '" + name + "' is NaN");
  return activation;
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  TensorDesc x = only_input(in);
  expect_weights(layer, {}, {}, {});
  if (activation_params(layer).kind != ActivationKind::relu) x.quantization = nullptr;  // zero is a value of every one
  return x;
}

}  // namespace

const LayerDef& activation_layer() {
  static const LayerDef def{"activation", infer, one_output<activation_reference>, collect_routines, Takes::selecting};
  return def;
}

}  // namespace softneuro
