#include "layers/contract/layer.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace softneuro {

double reference_activation(const Activation& act, double x) {
  switch (act.kind) {
    case ActivationKind::none:
      return x;
    case ActivationKind::relu:
      return x < 0 ? 0 : x;
    case ActivationKind::clamp:  // NaN stays, and with a > b the result is b, as in torch
      return x < act.a && act.a <= act.b ? act.a : (x > act.b || act.a > act.b) && !std::isnan(x) ? act.b : x;
    case ActivationKind::leaky_relu:
      return x > 0 ? x : act.a * x;
    case ActivationKind::hardswish:
    case ActivationKind::hardsigmoid: {
      const double gate = (x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3) / 6;
      return act.kind == ActivationKind::hardswish ? x * gate : gate;
    }
    case ActivationKind::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::silu:
      return x / (1 + std::exp(-x));
    case ActivationKind::swish:
      return x / (1 + std::exp(-act.a * x));
    case ActivationKind::gelu:
      return x * 0.5 * (1 + std::erf(x * 0.70710678118654752440));
    case ActivationKind::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case ActivationKind::elu:
      return x < 0 ? act.a * std::expm1(x) : x;
    case ActivationKind::exp:
      return std::exp(x);
    case ActivationKind::log:
      return std::log(x);
    case ActivationKind::erf:
      return std::erf(x);
    case ActivationKind::softplus:
      return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x)));
    case ActivationKind::mish:
      return x * std::tanh(x > 20 ? x : std::log1p(std::exp(x)));
  }
  return x;
}

double reference_quantized(const Quantization& q, double x) {
  const double scale = static_cast<double>(q.scales[0]), inverse = static_cast<double>(1 / q.scales[0]);
  const double steps = q.rounding == Quantization::Rounding::divides ? x / scale : x * inverse;
  const double least = q.least - q.zero_points[0], most = q.most - q.zero_points[0];
  const double step = std::isnan(steps) ? least : std::clamp(std::nearbyint(steps), least, most);
  return static_cast<double>(static_cast<float>(step) * q.scales[0]);
}

std::string PostOps::str() const {
  std::string text;
  if (quantize_first != nullptr) text += "+quantize_first";
  if (residual) text += "+residual";
  if (activation.kind != ActivationKind::none) {
    text += "+" + std::string(activation_name(activation.kind)) + "(" +
            exact_number(static_cast<double>(activation.a)) + "," + exact_number(static_cast<double>(activation.b)) +
            ")";
  }
  if (quantize != nullptr) text += "+quantize";
  return text;
}

const Constant* Layer::find_weight(std::string_view role) const {
  for (const auto& [name, value] : weights) {
    if (name == role) return &value;
  }
  return nullptr;
}

const Constant& Layer::weight(std::string_view role) const {
  if (const Constant* value = find_weight(role)) return *value;
  throw Error("weight '" + std::string(role) + "' is missing");
}

void Layer::set_weight(std::string_view role, Constant value) {
  std::erase_if(weights, [&](const auto& item) { return item.first == role; });
  if (value) weights.emplace_back(role, std::move(value));
}

std::string Problem::exact_signature() const {
  std::string text = layer->type + "{" + layer->attrs.str() + "}";
  auto sorted = layer->weights;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [role, value] : sorted) {
    text += " " + role + ":" + value->desc().exact() + value->traits().str();
    if (value->dtype() != DType::float32) text += ":" + std::string(dtype_name(value->dtype()));
  }
  text += layer->post.str();
  for (const TensorDesc& desc : in) text += " " + desc.exact();
  text += "->";
  for (size_t k = 0; k < outs.size(); ++k) text += (k == 0 ? "" : " ") + outs[k].exact();
  return text;
}

OutputDescs infer_outputs(const LayerDef& def, const Layer& layer, std::span<const TensorDesc> in) {
  if (def.takes == Takes::reals || def.takes == Takes::selecting) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i].kind == ValueKind::real) continue;
      throw Error("input " + std::to_string(i) + " (" + in[i].str() + ") has no real values", {},
                  "convert it first, by the layer `cast`");
    }
  }
  OutputDescs outs = def.infer(layer, in);
  if (def.takes == Takes::reals) {
    for (TensorDesc& desc : outs) desc.quantization = nullptr;
  }
  // Whatever else is done to values takes them off their grid.
  if (layer.post.residual || layer.post.activation.kind != ActivationKind::none) outs.front().quantization = nullptr;
  if (layer.post.quantize != nullptr) {
    TensorDesc& out = outs.front();
    if (out.kind != ValueKind::real) throw Error("only reals are quantized, not " + out.str());
    if (layer.post.quantize->axis >= 0) throw Error("a blob's quantization is per tensor, not per axis");
    check_quantization(*layer.post.quantize, out.shape);
    out.quantization = layer.post.quantize;
  }
  if (layer.post.quantize_first != nullptr) {
    if (!layer.post.residual) throw Error("quantize_first is for what a residual is added to");
    check_quantization(*layer.post.quantize_first, outs.front().shape);
  }
  return outs;
}

int updated_input(const LayerDef& def, const Layer& layer, int output) {
  return def.updates == nullptr ? -1 : def.updates(layer, output);
}

std::vector<double> reference_weight(const Layer& layer, std::string_view role) {
  return layer.weight(role)->doubles();
}

void run_reference(const LayerDef& def, const Layer& layer, std::span<const RefTensor> in,
                   std::span<const RefTensor> outs) {
  const auto main = in.first(in.size() - (layer.post.residual ? 1 : 0));
  def.reference(layer, main, outs);
  if (layer.post.empty()) return;
  const RefTensor& out = outs[0];
  const int64_t count = out.shape.elements();
  for (int64_t i = 0; i < count; ++i) {
    double value = out.data[i];
    if (layer.post.quantize_first != nullptr) value = reference_quantized(*layer.post.quantize_first, value);
    if (layer.post.residual) value += in.back().data[i];
    value = reference_activation(layer.post.activation, value);
    out.data[i] = layer.post.quantize != nullptr ? reference_quantized(*layer.post.quantize, value) : value;
  }
}

ActivationKind parse_activation(std::string_view name) {
  std::string known;
#define SN_MATCH(kind, formula)                   \
  if (name == #kind) return ActivationKind::kind; \
  known += (known.empty() ? "" : ", ") + std::string(#kind);
  SN_ACTIVATIONS(SN_MATCH)
#undef SN_MATCH
  throw Error("unknown activation '" + std::string(name) + "'", {}, "known are " + known);
}

}  // namespace softneuro
