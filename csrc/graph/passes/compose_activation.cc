// Activations that a model spells out in arithmetic get their names, in any order of factors:
//
//   hardsigmoid = clamp(x + 3, 0, 6) / 6       hardswish = x * hardsigmoid(x)
//   silu = x * sigmoid(x)                      swish = x * sigmoid(a * x)
//   mish = x * tanh(softplus(x))
//   gelu = x / 2 * (1 + erf(x / sqrt(2)))      gelu_tanh = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"
#include "graph/passes/spelt_quantization.h"
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

// x op number, with the number on the right where that matters.
std::optional<double> number_operand(const Graph& graph, const Layer* layer, const char* function) {
  if (!is_binary(layer, function, 1) || !same_shapes(graph, layer->inputs[0], layer->output())) return std::nullopt;
  const std::string_view name = function;
  if (name != "add" && name != "mul" && layer->attrs.flag("reversed", false)) return std::nullopt;
  const Constant* other = layer->find_weight("other");
  if (other == nullptr) return layer->attrs.real("scalar");
  if ((*other)->elements() != 1) return std::nullopt;
  return static_cast<double>(*(*other)->values());
}

// The factor of x * factor or x / (1 / factor).
std::optional<double> factor_of(const Graph& graph, const Layer* layer) {
  if (const auto factor = number_operand(graph, layer, "mul")) return factor;
  const auto divisor = number_operand(graph, layer, "div");
  return divisor ? std::optional(1 / *divisor) : std::nullopt;
}

// Whether a number is this one, as float32 or a shorter type has it or its reciprocal.
bool is_number(double value, double wanted) {
  const auto as = [](auto kind, double number) {
    return static_cast<double>(element_value(element_from<decltype(kind)>(static_cast<float>(number))));
  };
  const double stored[] = {wanted, as(Float16(), wanted), as(BFloat16(), wanted), 1 / as(Float16(), 1 / wanted),
                           1 / as(BFloat16(), 1 / wanted)};
  return std::any_of(std::begin(stored), std::end(stored), [&](double one) { return std::abs(value - one) < 1e-5; });
}

// The coefficients of a polynomial, the constant one first.
using Polynomial = std::array<double, 4>;

std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
  Polynomial result{};
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      const double term = a[i] * b[k];
      if (i + k < result.size()) result[i + k] += term;
      if (i + k >= result.size() && term != 0) return std::nullopt;
    }
  }
  return result;
}

// The polynomial is what arithmetic makes of x for `reader` alone.
std::optional<Polynomial> polynomial(const Graph& graph, int blob, int reader, int x, int depth = 0) {
  if (blob == x) return Polynomial{0, 1};
  const Layer* layer = private_producer(graph, blob, reader);
  if (layer == nullptr || layer->type != "binary" || depth == 8 || !same_shapes(graph, blob, x)) return std::nullopt;
  const auto part = [&](size_t side) {
    return polynomial(graph, layer->inputs[side], index_of(graph, layer), x, depth + 1);
  };
  std::optional<Polynomial> made = part(0);
  if (!made) return std::nullopt;
  if (const auto offset = number_operand(graph, layer, "add")) {
    (*made)[0] += *offset;
    return made;
  }
  if (const auto factor = factor_of(graph, layer)) return product(*made, {*factor});
  if (const auto exponent = number_operand(graph, layer, "pow")) {
    if (*exponent != 2 && *exponent != 3) return std::nullopt;
    const auto square = product(*made, *made);
    return *exponent == 2 || !square ? square : product(*square, *made);
  }
  const bool adds = is_binary(layer, "add", 2);
  if (!adds && !is_binary(layer, "mul", 2)) return std::nullopt;
  const std::optional<Polynomial> other = part(1);
  if (!other || !adds) return other ? product(*made, *other) : std::nullopt;
  for (size_t i = 0; i < made->size(); ++i) (*made)[i] += (*other)[i];
  return made;
}

bool is_line(const Polynomial& p) { return p[0] == 0 && p[2] == 0 && p[3] == 0; }

// A product has blobs as factors, and a number; layers between them are read by nothing else.
struct Factors {
  double number = 1;
  struct Blob {
    int id, reader;
  };
  std::vector<Blob> blobs;
};

void collect(const Graph& graph, int blob, int reader, Factors& to) {
  const Layer* layer = reader < 0 ? producer_of(graph, blob) : private_producer(graph, blob, reader);
  const auto factor = factor_of(graph, layer);
  const bool both = is_binary(layer, "mul", 2);
  if (to.blobs.size() > 2 || (!factor && !both)) return to.blobs.push_back({blob, reader});
  to.number *= factor.value_or(1);
  for (const int input : layer->inputs) collect(graph, input, index_of(graph, layer), to);
}

struct Found {
  int source = -1;
  ActivationKind kind = ActivationKind::none;
  double a = 0;
};

// The function names what number * x * gate is.
Found gated(const Graph& graph, double number, int x, const Factors::Blob& gate) {
  const Layer* layer = private_producer(graph, gate.id, gate.reader);
  if (layer == nullptr || !same_shapes(graph, gate.id, x)) return {};
  const auto inside = [&](const Layer* of) { return polynomial(graph, of->inputs[0], index_of(graph, of), x); };
  const auto is = [&](ActivationKind kind) { return is_activation(layer, kind); };
  if (number == 1 && is(ActivationKind::hardsigmoid) && layer->inputs[0] == x) return {x, ActivationKind::hardswish};
  if (number == 1 && is(ActivationKind::sigmoid)) {
    const auto line = inside(layer);
    if (!line || !is_line(*line)) return {};
    if ((*line)[1] == 1) return {x, ActivationKind::silu};
    return {x, ActivationKind::swish, (*line)[1]};
  }
  if (std::abs(number - 1.0 / 6) < 1e-7 && is_relu6(layer)) {
    const auto line = inside(layer);
    return line && *line == Polynomial{3, 1} ? Found{x, ActivationKind::hardswish} : Found{};
  }
  if (number == 1 && is(ActivationKind::tanh)) {
    const Layer* inner = private_producer(graph, layer->inputs[0], index_of(graph, layer));
    const bool smooth = is_activation(inner, ActivationKind::softplus) && inner->inputs[0] == x;
    return smooth ? Found{x, ActivationKind::mish} : Found{};
  }
  const auto one = number_operand(graph, layer, "add");
  if (!one || *one != 1 || number != 0.5) return {};
  layer = private_producer(graph, layer->inputs[0], index_of(graph, layer));
  if (!is(ActivationKind::erf) && !is(ActivationKind::tanh)) return {};
  const auto inner = inside(layer);
  if (!inner) return {};
  if (is(ActivationKind::erf)) {
    return is_line(*inner) && is_number((*inner)[1], 1 / std::numbers::sqrt2) ? Found{x, ActivationKind::gelu}
                                                                              : Found{};
  }
  const auto [constant, linear, square, cube] = *inner;
  const bool matches = constant == 0 && square == 0 &&
                       is_number(linear, std::numbers::sqrt2 * std::numbers::inv_sqrtpi) &&
                       is_number(cube / linear, 0.044715);
  return matches ? Found{x, ActivationKind::gelu_tanh} : Found{};
}

Found match(const Graph& graph, const Layer& layer) {
  Factors factors;
  collect(graph, layer.output(), -1, factors);
  const auto& blobs = factors.blobs;
  if (blobs.size() == 1 && std::abs(factors.number - 1.0 / 6) < 1e-7) {
    const Layer* clamp = private_producer(graph, blobs[0].id, blobs[0].reader);
    const Layer* sum = is_relu6(clamp) ? private_producer(graph, clamp->inputs[0], index_of(graph, clamp)) : nullptr;
    const auto offset = number_operand(graph, sum, "add");
    if (offset && *offset == 3) return {sum->inputs[0], ActivationKind::hardsigmoid};
  }
  if (blobs.size() != 2) return {};
  const Found found = gated(graph, factors.number, blobs[0].id, blobs[1]);
  return found.source >= 0 ? found : gated(graph, factors.number, blobs[1].id, blobs[0]);
}

}  // namespace

bool compose_activation(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& before = graph.layers()[l];
    if (before.type != "binary" || !before.post.empty()) continue;
    const Found found = match(graph, before);
    if (found.source < 0 || !same_shapes(graph, found.source, before.output())) continue;
    Layer& layer = graph.layer(static_cast<int>(l));
    layer.type = "activation";
    layer.attrs = {};
    layer.attrs.set("function", std::string(activation_name(found.kind)));
    if (found.kind == ActivationKind::swish) layer.attrs.set("a", found.a);
    layer.weights.clear();
    layer.inputs = {found.source};
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
