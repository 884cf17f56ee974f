// Activations that a model spells out in arithmetic get their names: silu = x * sigmoid(x),
// hardsigmoid = clamp(x + 3, 0, 6) / 6, hardswish = x * hardsigmoid(x) or x * clamp(x + 3, 0, 6) / 6,
// gelu = x * (1 + erf(x / sqrt(2))) / 2 in any order.
#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"
#include "layers/activation/activation.h"

namespace softneuro {
namespace {

bool is_activation(const Layer* layer, ActivationKind kind) {
  return layer != nullptr && layer->type == "activation" && layer->post.empty() &&
         activation_params(*layer).kind == kind;
}

bool is_relu6(const Layer* layer) {
  return is_activation(layer, ActivationKind::clamp) && activation_params(*layer).a == 0 &&
         activation_params(*layer).b == 6;
}

bool is_product(const Layer* layer) {
  return layer != nullptr && layer->type == "binary" && layer->post.empty() && layer->inputs.size() == 2 &&
         layer->attrs.text("function") == "mul";
}

// x op scalar, with the scalar on the right where that matters.
std::optional<double> scalar_operand(const Layer* layer, const char* function) {
  if (layer == nullptr || layer->type != "binary" || !layer->post.empty() || layer->inputs.size() != 1 ||
      layer->attrs.text("function") != function || layer->attrs.find("scalar") == nullptr)
    return std::nullopt;
  if (std::string_view(function) == "div" && layer->attrs.flag("reversed", false)) return std::nullopt;
  return layer->attrs.real("scalar");
}

bool is_sixth(const Layer* layer) {
  const auto divisor = scalar_operand(layer, "div"), factor = scalar_operand(layer, "mul");
  return (divisor && *divisor == 6) || (factor && std::abs(*factor - 1.0 / 6) < 1e-7);
}

// The x of clamp(x + 3, 0, 6), whose value only `reader` reads; -1 if `blob` is something else.
int gate_source(const Graph& graph, int blob, int reader) {
  const Layer* clamp = private_producer(graph, blob, reader);
  if (!is_relu6(clamp)) return -1;
  const Layer* sum = private_producer(graph, clamp->inputs[0], index_of(graph, clamp));
  const auto offset = scalar_operand(sum, "add");
  return offset && *offset == 3 ? sum->inputs[0] : -1;
}

// Whether a number is this one, as float32 or a shorter type has it.
bool is_number(double value, double wanted) {
  const auto as = [&](auto kind) {
    return static_cast<double>(element_value(element_from<decltype(kind)>(static_cast<float>(wanted))));
  };
  const double stored[] = {wanted, as(Float16()), as(BFloat16())};
  return std::any_of(std::begin(stored), std::end(stored), [&](double one) { return std::abs(value - one) < 1e-5; });
}

// The x of x * factor or x / (1 / factor), else -1.
int scaled_source(const Layer* layer, double factor) {
  const auto product = scalar_operand(layer, "mul"), quotient = scalar_operand(layer, "div");
  const bool matches = (product && is_number(*product, factor)) || (quotient && is_number(*quotient, 1 / factor));
  return matches ? layer->inputs[0] : -1;
}

// The x of 1 + erf(x / sqrt(2)), whose value only `reader` reads; -1 if `blob` is something else.
int gelu_gate_source(const Graph& graph, int blob, int reader) {
  const Layer* sum = private_producer(graph, blob, reader);
  const auto offset = scalar_operand(sum, "add");
  if (!offset || *offset != 1) return -1;
  const Layer* erf = private_producer(graph, sum->inputs[0], index_of(graph, sum));
  if (!is_activation(erf, ActivationKind::erf)) return -1;
  return scaled_source(private_producer(graph, erf->inputs[0], index_of(graph, erf)), std::sqrt(0.5));
}

// x * gate where the gate is made from x by one of `make`; the x, or -1.
template <typename Source>
int gated(const Layer& product, const Source& source) {
  for (size_t side = 0; side < 2; ++side) {
    const int x = product.inputs[side], gate = product.inputs[1 - side];
    if (x != gate && source(gate) == x) return x;
  }
  return -1;
}

// The x of a GELU whose last layer this is, or -1.
int gelu_source(const Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (is_product(&layer)) {
    const int x = gated(layer, [&](int blob) {  // x * ((1 + erf) / 2)
      const Layer* half = private_producer(graph, blob, index);
      const int sum = scaled_source(half, 0.5);
      return sum < 0 ? -1 : gelu_gate_source(graph, sum, index_of(graph, half));
    });
    if (x >= 0) return x;
    for (size_t side = 0; side < 2; ++side) {  // (x / 2) * (1 + erf)
      const int source = scaled_source(private_producer(graph, layer.inputs[side], index), 0.5);
      if (source >= 0 && gelu_gate_source(graph, layer.inputs[1 - side], index) == source) return source;
    }
    return -1;
  }
  const int product = scaled_source(&layer, 0.5);  // (x * (1 + erf)) / 2
  const Layer* inner = product < 0 ? nullptr : private_producer(graph, product, index);
  if (!is_product(inner)) return -1;
  return gated(*inner, [&](int blob) { return gelu_gate_source(graph, blob, index_of(graph, inner)); });
}

struct Found {
  ActivationKind kind;
  int source = -1;
};

Found match(const Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (is_product(&layer)) {
    const auto activated = [&](ActivationKind kind) {
      return gated(layer, [&](int gate) {
        const Layer* made = private_producer(graph, gate, index);
        return is_activation(made, kind) ? made->inputs[0] : -1;
      });
    };
    if (const int x = activated(ActivationKind::sigmoid); x >= 0) return {ActivationKind::silu, x};
    if (const int x = activated(ActivationKind::hardsigmoid); x >= 0) return {ActivationKind::hardswish, x};
  }
  if (const int x = gelu_source(graph, index); x >= 0) return {ActivationKind::gelu, x};
  if (is_sixth(&layer)) {
    const int blob = layer.inputs[0];
    if (const int x = gate_source(graph, blob, index); x >= 0) return {ActivationKind::hardsigmoid, x};
    const Layer* product = private_producer(graph, blob, index);
    if (is_product(product)) {
      const int reader = index_of(graph, product);
      const int x = gated(*product, [&](int gate) { return gate_source(graph, gate, reader); });
      if (x >= 0) return {ActivationKind::hardswish, x};
    }
  }
  return {ActivationKind::none, -1};
}

}  // namespace

bool compose_activation(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Found found = match(graph, static_cast<int>(l));
    if (found.source < 0) continue;
    Layer& layer = graph.layer(static_cast<int>(l));
    layer.type = "activation";
    layer.attrs = {};
    layer.attrs.set("function", std::string(activation_name(found.kind)));
    layer.inputs = {found.source};
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
