#include "graph/passes/spelt_quantization.h"

#include <algorithm>
#include <cmath>

#include "graph/passes/common.h"
#include "layers/activation/activation.h"

namespace softneuro {
namespace {

// Bounds on both sides, or the lower one alone.
std::optional<Activation> clamp_of(const Layer* layer) {
  if (layer == nullptr || layer->type != "activation" || !layer->post.empty()) return std::nullopt;
  const Activation activation = activation_params(*layer);
  return activation.kind == ActivationKind::clamp ? std::optional(activation) : std::nullopt;
}

bool is_range(double least, double most) {
  return std::nearbyint(least) == least && std::nearbyint(most) == most && least >= -128 && least <= 0 && most > 0 &&
         most <= (least < 0 ? 127 : 255);
}

const Layer* maker(const Graph& graph, int blob) { return producer_of(graph, origin(graph, blob)); }

// The scale whose reciprocal this is, else -1.
int inverted(const Graph& graph, int blob) {
  const Layer* layer = maker(graph, blob);
  const auto one = uniform_operand(layer, "div", true);
  return one && *one == 1 ? layer->inputs[0] : -1;
}

struct Bound {
  const Layer* reduce;  // null: it is something else
  bool whole;           // over all axes
};

// The greatest value of each row, or of all, and zero; or the least.
Bound bound_of(const Graph& graph, int blob, bool greatest) {
  const Layer* layer = maker(graph, blob);
  const auto zero = uniform_operand(layer, greatest ? "max" : "min");
  const Layer* reduce = zero && *zero == 0 ? maker(graph, layer->inputs[0]) : nullptr;
  if (reduce == nullptr || reduce->type != "reduce" || reduce->attrs.text("function") != (greatest ? "amax" : "amin"))
    return {nullptr, false};
  return {reduce, graph.blob(reduce->output()).desc.shape.elements() == 1};
}

// The two ends that a scale is a fraction of the distance of; -1 if it is something else.
struct Ends {
  int least = -1, most = -1;
};

Ends distance_of(const Graph& graph, int blob) {
  const Layer* layer = maker(graph, blob);
  if (is_binary(layer, "sub", 2)) return {layer->inputs[1], layer->inputs[0]};
  if (!is_binary(layer, "max", 2)) return {};
  for (const size_t side : {0U, 1U}) {
    const Layer* negated = maker(graph, layer->inputs[side]);
    const auto minus = uniform_operand(negated, "mul");
    if (minus && *minus == -1) return {negated->inputs[0], layer->inputs[1 - side]};
  }
  return {};
}

// clamp(least - round(low / scale), least, most)
bool is_zero_point(const Graph& graph, const RoundedSteps& steps, int low) {
  const Layer* layer = maker(graph, steps.zero);
  const auto clamp = clamp_of(layer);
  if (!clamp || clamp->a != static_cast<float>(steps.least) || clamp->b != static_cast<float>(steps.most)) return false;
  const Layer* difference = maker(graph, layer->inputs[0]);
  const auto least = uniform_operand(difference, "sub", true);
  if (!least || *least != steps.least) return false;
  const Layer* rounded = maker(graph, difference->inputs[0]);
  const Layer* ratio = is_binary(rounded, "round", 1) ? maker(graph, rounded->inputs[0]) : nullptr;
  return is_binary(ratio, "div", 2) && origin(graph, ratio->inputs[0]) == origin(graph, low) &&
         origin(graph, ratio->inputs[1]) == origin(graph, steps.scale);
}

}  // namespace

bool is_binary(const Layer* layer, std::string_view function, int inputs) {
  return layer != nullptr && layer->type == "binary" && layer->post.empty() &&
         static_cast<int>(layer->inputs.size()) == inputs && layer->attrs.text("function") == function;
}

Constant constant_operand(const Layer& layer, std::string_view function) {
  if (!is_binary(&layer, function, 1) || layer.attrs.flag("reversed", false)) return nullptr;
  const Constant* other = layer.find_weight("other");
  return other == nullptr ? nullptr : *other;
}

std::optional<double> uniform_operand(const Layer* layer, std::string_view function, bool reversed) {
  if (!is_binary(layer, function, 1)) return std::nullopt;
  const bool turns = function != "add" && function != "mul" && function != "max" && function != "min";
  if (turns && layer->attrs.flag("reversed", false) != reversed) return std::nullopt;
  const Constant* other = layer->find_weight("other");
  if (other == nullptr) return static_cast<double>(static_cast<float>(layer->attrs.real("scalar")));
  const int64_t count = (*other)->elements();
  if (count == 0) return std::nullopt;
  const auto values = (*other)->values();
  const float first = values.get()[0];
  if (!std::all_of(values.get(), values.get() + count, [&](float x) { return x == first; })) return std::nullopt;
  return static_cast<double>(first);
}

bool same_shapes(const Graph& graph, int a, int b) { return graph.blob(a).desc.shape == graph.blob(b).desc.shape; }

int origin(const Graph& graph, int blob, bool rows_stay) {
  const Layer* layer = producer_of(graph, blob);
  while (layer != nullptr && layer->type == "reshape" && layer->post.empty()) {
    const int source = layer->inputs[0];
    if (rows_stay && !keeps_rows(graph.blob(source).desc.shape, graph.blob(blob).desc.shape)) break;
    blob = source;
    layer = producer_of(graph, blob);
  }
  return blob;
}

bool are_same_elements(const Graph& graph, const std::vector<int>& blobs, const std::vector<int>& wanted) {
  const auto origins = [&](const std::vector<int>& of) {
    std::vector<int> found;
    for (const int blob : of) found.push_back(origin(graph, blob));
    std::sort(found.begin(), found.end());
    return found;
  };
  return origins(blobs) == origins(wanted);
}

int64_t elements(const Graph& graph, int blob) { return graph.blob(blob).desc.shape.elements(); }

int64_t last_size(const Graph& graph, int blob) {
  const Shape& shape = graph.blob(blob).desc.shape;
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
}

bool is_by_row(const Graph& graph, int blob, int other) {
  return is_along_rows(graph.blob(blob).desc.shape, graph.blob(other).desc.shape);
}

std::optional<RoundedSteps> rounded_steps(const Graph& graph, int blob) {
  const Layer* layer = producer_of(graph, blob);
  const auto clamp = clamp_of(layer);
  if (!clamp || !is_range(static_cast<double>(clamp->a), static_cast<double>(clamp->b))) return std::nullopt;
  RoundedSteps steps;
  steps.least = static_cast<int32_t>(clamp->a), steps.most = static_cast<int32_t>(clamp->b);
  int rounded = layer->inputs[0];
  const Layer* sum = producer_of(graph, rounded);
  if (const auto zero = uniform_operand(sum, "add")) {
    steps.constant_zero = *zero;
    rounded = sum->inputs[0];
  } else if (is_binary(sum, "add", 2)) {
    steps.sum = graph.blob(rounded).producer;
    steps.zero_side = is_binary(producer_of(graph, sum->inputs[0]), "round", 1) ? 1 : 0;
    steps.zero = sum->inputs[steps.zero_side];
    rounded = sum->inputs[1 - steps.zero_side];
    if (!is_by_row(graph, steps.zero, rounded)) return std::nullopt;
  }
  const Layer* round = producer_of(graph, rounded);
  if (!is_binary(round, "round", 1) || !same_shapes(graph, rounded, blob)) return std::nullopt;
  const int scaled = round->inputs[0];
  const Layer* product = producer_of(graph, scaled);
  if (uniform_operand(product, "mul")) {
    steps.factor = graph.blob(scaled).producer;
    steps.source = product->inputs[0];
    return steps;
  }
  if (!is_binary(product, "mul", 2)) return std::nullopt;
  for (const size_t side : {0U, 1U}) {
    steps.scale = inverted(graph, product->inputs[side]);
    steps.source = product->inputs[1 - side];
    if (steps.scale >= 0 && same_shapes(graph, steps.source, blob) &&
        is_by_row(graph, product->inputs[side], steps.source))
      return steps;
  }
  return std::nullopt;
}

std::optional<SpeltRange> range_of(const Graph& graph, const RoundedSteps& steps) {
  const Layer* bounded = maker(graph, steps.scale);
  const auto clamp = clamp_of(bounded);
  if (!clamp || !(clamp->a > 0) || !std::isfinite(clamp->a) || std::isfinite(clamp->b)) return std::nullopt;
  const Layer* fraction = maker(graph, bounded->inputs[0]);
  const auto count = uniform_operand(fraction, "div");
  if (!count) return std::nullopt;
  const Ends ends = distance_of(graph, fraction->inputs[0]);
  if (ends.least < 0) return std::nullopt;
  const Bound low = bound_of(graph, ends.least, false), high = bound_of(graph, ends.most, true);
  if (low.reduce == nullptr || high.reduce == nullptr || low.whole != high.whole) return std::nullopt;
  SpeltRange range{.source = low.reduce->inputs[0], .eps = static_cast<double>(clamp->a)};
  range.symmetric = is_binary(maker(graph, fraction->inputs[0]), "max", 2);
  const double span = steps.most - steps.least;
  if (*count != (range.symmetric ? span / 2 : span)) return std::nullopt;
  if (!are_same_elements(graph, {low.reduce->inputs[0], high.reduce->inputs[0]}, {steps.source, steps.source}))
    return std::nullopt;
  // Scales of rows are for the rows of what is divided by them.
  const Shape &shape = graph.blob(range.source).desc.shape, &scales = graph.blob(steps.scale).desc.shape;
  const int rank = shape.rank();
  range.rows = !low.whole;
  const auto by_row = [&](const Layer* reduce) {
    return reduce->attrs.integers("axes") == std::vector<int64_t>{rank - 1} && reduce->attrs.flag("keepdim", false);
  };
  if (range.rows && (!by_row(low.reduce) || !by_row(high.reduce) || !same_shapes(graph, range.source, steps.source) ||
                     scales != graph.blob(low.reduce->output()).desc.shape))
    return std::nullopt;
  if (!range.rows && (elements(graph, steps.scale) != 1 || (steps.zero >= 0 && elements(graph, steps.zero) != 1)))
    return std::nullopt;
  const int middle = (steps.least + steps.most + 1) / 2;
  const bool fits = range.symmetric ? steps.zero < 0 && steps.constant_zero == middle
                                    : steps.zero >= 0 && is_zero_point(graph, steps, ends.least);
  return fits ? std::optional(range) : std::nullopt;
}

}  // namespace softneuro
