#include "layers/activation/activation.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/activation/routines.inc"
#include "layers/contract/collect.inc"

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

// Whether what is clamped stays one of the values that it may have.
bool keeps_grid(const Activation& activation, const Quantization& q) {
  if (activation.kind == ActivationKind::relu) return true;  // zero is a value of every one
  if (activation.kind != ActivationKind::clamp) return false;
  const auto value = [&](int32_t step) { return static_cast<float>(step - q.zero_points[0]) * q.scales[0]; };
  const auto is_value = [&](float x) {
    return reference_quantized(q, static_cast<double>(x)) == static_cast<double>(x);
  };
  return (activation.a <= value(q.least) || is_value(activation.a)) &&
         (activation.b >= value(q.most) || is_value(activation.b));
}

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  TensorDesc x = only_input(in);
  expect_weights(layer, {}, {}, {});
  const Activation activation = activation_params(layer);
  if (x.quantization != nullptr && !keeps_grid(activation, *x.quantization)) x.quantization = nullptr;
  return x;
}

}  // namespace

const LayerDef& activation_layer() {
  static const LayerDef def{"activation", infer, one_output<activation_reference>, collect_routines, Takes::selecting};
  return def;
}

}  // namespace softneuro
