// Normalisations that a model spells out in arithmetic become layers:
//
//   x * rsqrt(mean(x^2) + eps)                     rms_norm
//   d * rsqrt(mean(d^2) + eps), d = x - mean(x)    layer_norm
//
// where means are of the last axes, and roots may be spelt in other ways. TensorFlow's x * g + (bias - mean(x) * g),
// where g is the inverse root and perhaps a weight, is a layer_norm, too. A constant by which the result of either is
// multiplied becomes its weight, and one that is added to a layer_norm's its bias.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"
#include "graph/passes/spelt_quantization.h"

namespace softneuro {
namespace {

const Shape& shape_of(const Graph& graph, int blob) { return graph.blob(blob).desc.shape; }

// How many last axes of its input a layer makes the mean of, leaving them behind with size 1; 0 if it does not.
int mean_axes(const Graph& graph, const Layer* layer) {
  if (layer == nullptr || !layer->post.empty()) return 0;
  if (layer->type == "adaptive_pool2d") {
    const bool whole = layer->attrs.integers("output_size") == std::vector<int64_t>{1, 1};
    return whole && layer->attrs.text("function") == "avg" ? 2 : 0;
  }
  if (layer->type != "reduce" || layer->attrs.text("function") != "mean" || !layer->attrs.flag("keepdim", false))
    return 0;
  std::vector<int64_t> axes = layer->attrs.integers("axes");
  std::sort(axes.begin(), axes.end());
  std::vector<int64_t> last(axes.size());
  std::iota(last.begin(), last.end(), shape_of(graph, layer->inputs[0]).rank() - static_cast<int64_t>(axes.size()));
  return axes == last ? static_cast<int>(axes.size()) : 0;
}

// Whether layers of the graph compute the same.
bool is_twin(const Graph& graph, int a, int b);

bool are_twins(const Graph& graph, const Layer* a, const Layer* b) {
  if (a == nullptr || b == nullptr) return false;
  if (is_binary(a, "sub", 2) && is_binary(b, "sub", 2)) {
    return a->inputs[0] == b->inputs[0] && is_twin(graph, a->inputs[1], b->inputs[1]);
  }
  const int axes = mean_axes(graph, a);
  return axes > 0 && axes == mean_axes(graph, b) && a->inputs[0] == b->inputs[0];
}

bool is_twin(const Graph& graph, int a, int b) {
  return a == b || are_twins(graph, producer_of(graph, a), producer_of(graph, b));
}

// The x of x^2, which has two twins where they are computed twice.
struct Squared {
  int a = -1, b = -1;
};

Squared squared(const Graph& graph, const Layer* layer) {
  if (const auto exponent = uniform_operand(layer, "pow"); exponent && *exponent == 2) {
    return {layer->inputs[0], layer->inputs[0]};
  }
  if (!is_binary(layer, "mul", 2) || !is_twin(graph, layer->inputs[0], layer->inputs[1])) return {};
  return {layer->inputs[0], layer->inputs[1]};
}

// The layer whose root a layer takes; `inverse`: one by the root.
const Layer* under_root(const Graph& graph, const Layer* layer, bool inverse) {
  if (layer == nullptr) return nullptr;
  const auto below = [&](const Layer* of) { return private_producer(graph, of->inputs[0], index_of(graph, of)); };
  if (is_binary(layer, inverse ? "rsqrt" : "sqrt", 1)) return below(layer);
  if (const auto exponent = uniform_operand(layer, "pow"); exponent && *exponent == (inverse ? -0.5 : 0.5)) {
    return below(layer);
  }
  const auto one = inverse ? uniform_operand(layer, "div", true) : std::nullopt;
  return one && *one == 1 ? under_root(graph, below(layer), false) : nullptr;
}

struct Norm {
  int source = -1;
  int axes = 0;
  double eps = 0;
  Squared squared;
  int squares = -1;  // the layer that makes them
  int scaled = -1;   // the layer that multiplies an operand by a constant
};

// This describes mean(x^2) + eps, which is not read otherwise.
std::optional<Norm> mean_square(const Graph& graph, const Layer* sum) {
  const auto above = [&](const Layer* of) { return private_producer(graph, of->inputs[0], index_of(graph, of)); };
  if (!is_binary(sum, "add", 1)) return std::nullopt;
  const Layer* mean = above(sum);
  Norm norm;
  norm.axes = mean_axes(graph, mean);
  if (norm.axes == 0 || !same_shapes(graph, sum->output(), mean->output())) return std::nullopt;
  const Layer* squares = above(mean);
  norm.squared = squared(graph, squares);
  if (norm.squared.a < 0 || !same_shapes(graph, norm.squared.a, squares->output())) return std::nullopt;
  norm.squares = index_of(graph, squares);
  const auto eps = uniform_operand(sum, "add");
  if (!eps || !(*eps > 0) || !std::isfinite(*eps)) return std::nullopt;
  norm.eps = *eps;
  return norm;
}

// This describes what a layer takes the root of.
std::optional<Norm> of_root(const Graph& graph, const Layer* root, bool inverse) {
  const Layer* sum = under_root(graph, root, inverse);
  const std::optional<Norm> norm = sum == nullptr ? std::nullopt : mean_square(graph, sum);
  return norm && same_shapes(graph, root->output(), sum->output()) ? norm : std::nullopt;
}

// This is a blob that a layer divides by the root of its own mean square.
std::optional<Norm> rms_norm_of(const Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  const bool product = is_binary(&layer, "mul", 2);
  if (!product && !is_binary(&layer, "div", 2)) return std::nullopt;
  for (const size_t side : {1U, 0U}) {
    if (!product && side == 0) break;
    const Layer *root = private_producer(graph, layer.inputs[side], index), *factor = nullptr;
    if (product && is_binary(root, "mul", 1) && same_shapes(graph, root->output(), layer.output())) {
      factor = root;
      root = private_producer(graph, factor->inputs[0], index_of(graph, factor));
    }
    std::optional<Norm> norm = of_root(graph, root, product);
    if (!norm) continue;
    norm->source = layer.inputs[1 - side];
    if (const Layer* other = private_producer(graph, norm->source, index);
        factor == nullptr && is_binary(other, "mul", 1)) {
      factor = other;
      norm->source = factor->inputs[0];
    }
    norm->scaled = factor == nullptr ? -1 : index_of(graph, factor);
    if (is_twin(graph, norm->source, norm->squared.a) && same_shapes(graph, norm->source, layer.output())) return norm;
  }
  return std::nullopt;
}

bool only_read_by(const Graph& graph, int blob, const std::vector<int>& readers) {
  const std::vector<int> found = graph.consumers(blob);
  return !graph.is_output(blob) && std::all_of(found.begin(), found.end(), [&](int reader) {
    return std::find(readers.begin(), readers.end(), reader) != readers.end();
  });
}

// The x of the differences x - mean(x), if nothing else reads these; else -1.
int centred_source(const Graph& graph, const Norm& norm, int index) {
  const Layer* difference = producer_of(graph, norm.source);
  if (!is_binary(difference, "sub", 2)) return -1;
  const int x = difference->inputs[0];
  std::vector<int> subtractions;
  for (const int one : {norm.source, norm.squared.a, norm.squared.b}) {
    if (!only_read_by(graph, one, {index, norm.squares, norm.scaled})) return -1;
    subtractions.push_back(graph.blob(one).producer);
  }
  std::vector<int> readers = subtractions;
  readers.push_back(index);
  for (const int subtraction : subtractions) {
    const int blob = graph.layers()[static_cast<size_t>(subtraction)].inputs[1];
    const Layer* mean = producer_of(graph, blob);
    if (mean_axes(graph, mean) != norm.axes || mean->inputs[0] != x || !only_read_by(graph, blob, readers)) return -1;
  }
  return x;
}

// Routines read the images of a batch one by one, as these may have gaps between them.
bool is_of_images(const Shape& shape, int axes) { return axes < shape.rank() || axes == 1 || shape[0] == 1; }

void become(Layer& layer, const char* type, const Norm& norm, int source) {
  layer.type = type;
  layer.inputs = {source};
  layer.weights.clear();
  layer.attrs = {};
  layer.attrs.set("axes", int64_t{norm.axes});
  layer.attrs.set("eps", norm.eps);
}

// A layer does with the output of an earlier one what that does to its own input, which is to become something else.
void move_behind(Graph& graph, int earlier, int index) {
  const Layer& from = graph.layers()[static_cast<size_t>(earlier)];
  Layer& to = graph.layer(index);
  to.attrs = from.attrs, to.weights = from.weights;
  to.inputs = {from.output()};
}

bool compose(Graph& graph, int index) {
  const std::optional<Norm> norm = rms_norm_of(graph, index);
  if (!norm || !is_of_images(shape_of(graph, norm->source), norm->axes)) return false;
  const int centred = centred_source(graph, *norm, index);
  if (norm->scaled >= 0) move_behind(graph, norm->scaled, index);
  become(graph.layer(norm->scaled < 0 ? index : norm->scaled), centred < 0 ? "rms_norm" : "layer_norm", *norm,
         centred < 0 ? norm->source : centred);
  return true;
}

// x * g + (bias - mean(x) * g) where g is the inverse root, which may be multiplied by a constant.
struct Shifted {
  Norm norm;  // of x
  const Layer *product, *shift, *factor;
};

std::optional<Shifted> shifted(const Graph& graph, int x, int g, const Layer* product, const Layer* shift) {
  const Layer* moved = private_producer(graph, shift->inputs[0], index_of(graph, shift));
  if (!is_binary(moved, "mul", 2) || (moved->inputs[0] != g && moved->inputs[1] != g)) return std::nullopt;
  const int mean = moved->inputs[moved->inputs[0] == g ? 1 : 0];
  if (!only_read_by(graph, g, {index_of(graph, product), index_of(graph, moved)})) return std::nullopt;
  const Layer *root = producer_of(graph, g), *factor = nullptr;
  if (is_binary(root, "mul", 1)) {
    factor = root;
    root = private_producer(graph, factor->inputs[0], index_of(graph, factor));
  }
  std::optional<Norm> norm = of_root(graph, root, true);
  if (!norm) return std::nullopt;
  const Layer* difference = producer_of(graph, norm->squared.a);
  if (!is_binary(difference, "sub", 2) || difference->inputs[0] != x || !is_twin(graph, difference->inputs[1], mean))
    return std::nullopt;
  norm->source = norm->squared.a;
  if (centred_source(graph, *norm, index_of(graph, moved)) != x) return std::nullopt;
  norm->source = x;
  return Shifted{*norm, product, shift, factor};
}

bool compose_shifted(Graph& graph, int index) {
  const Layer& sum = graph.layers()[static_cast<size_t>(index)];
  if (!is_binary(&sum, "add", 2)) return false;
  std::optional<Shifted> found;
  for (size_t way = 0; way < 4 && !found; ++way) {
    const size_t side = way / 2, at = way % 2;
    const Layer* product = private_producer(graph, sum.inputs[side], index);
    const Layer* shift = private_producer(graph, sum.inputs[1 - side], index);
    if (!is_binary(product, "mul", 2) || !is_binary(shift, "sub", 1) || !shift->attrs.flag("reversed", false)) continue;
    found = shifted(graph, product->inputs[at], product->inputs[1 - at], product, shift);
  }
  if (!found) return false;
  const auto& [norm, product, shift, factor] = *found;
  for (const int blob : {norm.source, product->output(), shift->output()}) {
    if (!same_shapes(graph, blob, sum.output())) return false;
  }
  if (!is_of_images(shape_of(graph, norm.source), norm.axes)) return false;
  Layer& last = graph.layer(index);
  last.inputs = {factor == nullptr ? product->output() : shift->output()};
  last.attrs = shift->attrs, last.weights = shift->weights;
  last.attrs.set("function", std::string("add"));
  last.attrs.erase("reversed");
  if (factor != nullptr) {
    Layer& weighted = graph.layer(index_of(graph, shift));
    weighted.attrs = factor->attrs, weighted.weights = factor->weights;
    weighted.inputs = {product->output()};
  }
  become(graph.layer(index_of(graph, product)), "layer_norm", norm, norm.source);
  return true;
}

// The constant operand of an operation as a parameter of the last axes of this shape; null if it differs along others.
Constant for_last_axes(const Layer& operation, const Shape& of, int axes) {
  const Shape normalised(std::span<const int64_t>(of.end() - axes, of.end()));
  const Constant* other = operation.find_weight("other");
  if (other == nullptr) {
    const auto scalar = static_cast<float>(operation.attrs.real("scalar"));
    return lazy_constant(normalised, [scalar, count = static_cast<size_t>(normalised.elements())] {
      return std::vector<float>(count, scalar);
    });
  }
  const Shape& own = (*other)->shape();
  if (own == normalised) return *other;
  std::vector<int64_t> steps(static_cast<size_t>(axes), 0);  // of the operand, by axis
  int64_t step = 1;
  for (int axis = own.rank() - 1; axis >= 0; --axis) {
    const int at = axis - own.rank() + axes;
    if (at < 0 && own[axis] != 1) return nullptr;
    if (own[axis] != 1) steps[static_cast<size_t>(at)] = step;
    step *= own[axis];
  }
  return lazy_constant(normalised, [other = *other, normalised, steps] {
    const ConstantData::Values values = other->values();
    std::vector<float> result;
    for (int64_t i = 0; i < normalised.elements(); ++i) {
      int64_t at = 0, rest = i;
      for (int axis = normalised.rank() - 1; axis >= 0; rest /= normalised[axis], --axis) {
        at += rest % normalised[axis] * steps[static_cast<size_t>(axis)];
      }
      result.push_back(values.get()[at]);
    }
    return result;
  });
}

// A product with a constant, or a sum, that goes into the normalisation before it.
bool absorb_parameter(Graph& graph, int index) {
  const Layer& operation = graph.layers()[static_cast<size_t>(index)];
  const bool product = is_binary(&operation, "mul", 1);
  if (!product && !is_binary(&operation, "add", 1)) return false;
  const int blob = operation.inputs[0];
  const Layer* norm = private_producer(graph, blob, index);
  if (norm == nullptr || (norm->type != "layer_norm" && (norm->type != "rms_norm" || !product))) return false;
  const char* role = product ? "weight" : "bias";
  const bool taken = norm->find_weight("bias") != nullptr || (product && norm->find_weight("weight") != nullptr);
  if (taken || !norm->post.empty() || !same_shapes(graph, blob, operation.output())) return false;
  const auto axes = static_cast<int>(norm->attrs.integer("axes"));
  const Constant parameter = for_last_axes(operation, shape_of(graph, blob), axes);
  if (parameter == nullptr) return false;
  graph.layer(index_of(graph, norm)).set_weight(role, parameter);
  retire(graph, index, blob);
  return true;
}

}  // namespace

bool compose_norm(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {  // products come before what their results go into
    const int index = static_cast<int>(l);
    changed |= compose(graph, index) || compose_shifted(graph, index) || absorb_parameter(graph, index);
  }
  return changed;
}

}  // namespace softneuro
