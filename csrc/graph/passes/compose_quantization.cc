// Quantization that a model spells out in arithmetic gets its name:
//
//   clamp(round(x * (1 / scale)) + zero, least, most)     where scale and zero follow from the range of x:
//                                                         dynamic_quantize, or its steps plus zero
//   the same, of a constant 1 / scale, times a weight     quantize times the weight, then divided by the scale
//
// And products of shifted steps become products of steps, where what the shift adds is subtracted behind:
//
//   (steps + c) * weight - c * sums                       sums: of the weight's rows, a constant
//   ((steps + zero) * weight) * scale - zero * scale * sums
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"
#include "graph/passes/spelt_quantization.h"

namespace softneuro {
namespace {

// A product with a weight of signed bytes alone.
bool has_bytes(const Layer* layer) {
  if (layer == nullptr || layer->type != "linear" || !layer->post.empty()) return false;
  const Constant& weight = layer->weight("weight");
  const Quantization* grid = weight->desc().quantization.get();
  return grid != nullptr && grid->is_signed() && grid->axis <= 0 && weight->memory() != nullptr &&
         layer->find_weight("bias") == nullptr;
}

// Whether constants are `factor` times the sums of a weight's rows, but for rounding.
bool are_sums(const Constant& values, const Constant& weight, double factor) {
  const int64_t rows = weight->shape()[0], columns = weight->shape()[1];
  const Shape& shape = values->shape();
  const bool is_list = shape.elements() == rows && (rows == 1 || shape[shape.rank() - 1] == rows);
  if (!is_list) return false;
  const auto given = values->values();
  const auto* bytes = static_cast<const int8_t*>(weight->memory().get());
  const Quantization& grid = *weight->desc().quantization;
  for (int64_t row = 0; row < rows; ++row, bytes += columns) {
    const size_t at = grid.axis < 0 ? 0 : static_cast<size_t>(row);
    const int64_t steps = std::accumulate(bytes, bytes + columns, int64_t{0}) - columns * grid.zero_points[at];
    const double sum = factor * static_cast<double>(steps) * static_cast<double>(grid.scales[at]);
    if (std::abs(static_cast<double>(given.get()[row]) - sum) > 1e-6 * std::abs(sum)) return false;
  }
  return true;
}

int insert_product(Graph& graph, Layer linear, int operand) {
  linear.inputs = {operand};
  return graph.insert_layer(std::move(linear));
}

// (steps + c) * weight - c * sums
bool drop_constant_shift(Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  const Constant other = constant_operand(layer, "sub");
  if (other == nullptr) return false;
  const Layer* product = producer_of(graph, layer.inputs[0]);
  if (!has_bytes(product) || !same_shapes(graph, layer.inputs[0], layer.output())) return false;
  const Layer* shifted = producer_of(graph, product->inputs[0]);
  const auto shift = uniform_operand(shifted, "add");
  if (!shift || !same_shapes(graph, shifted->inputs[0], shifted->output())) return false;
  if (!are_sums(other, product->weight("weight"), *shift)) return false;
  retire(graph, index, insert_product(graph, *product, shifted->inputs[0]));
  return true;
}

// zero * scale * sums, which is subtracted from products: of one number, or of one for each of their rows, in both.
struct Subtracted {
  std::vector<int> factors;  // zero and scale
  Constant sums;
};

std::optional<Subtracted> subtracted(const Graph& graph, int blob, int64_t columns) {
  const int made = origin(graph, blob);
  const Layer* layer = producer_of(graph, made);
  const Constant sums = layer == nullptr ? nullptr : constant_operand(*layer, "mul");
  if (sums == nullptr || last_size(graph, blob) != columns || last_size(graph, made) != columns) return std::nullopt;
  const int rows = origin(graph, layer->inputs[0]);
  const Layer* product = producer_of(graph, rows);
  if (!is_binary(product, "mul", 2) || elements(graph, rows) * columns != elements(graph, made)) return std::nullopt;
  if (!is_by_row(graph, layer->inputs[0], made)) return std::nullopt;
  const int64_t most = std::max(elements(graph, product->inputs[0]), elements(graph, product->inputs[1]));
  return most == elements(graph, rows) ? std::optional(Subtracted{product->inputs, sums}) : std::nullopt;
}

// ((steps + zero) * weight) * scale - zero * scale * sums
bool drop_zero_shift(Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (!is_binary(&layer, "sub", 2)) return false;
  const Layer* scaled = producer_of(graph, layer.inputs[0]);
  if (!is_binary(scaled, "mul", 2) || !same_shapes(graph, scaled->output(), layer.output())) return false;
  const auto shift = subtracted(graph, layer.inputs[1], last_size(graph, layer.output()));
  if (!shift) return false;
  for (const size_t side : {0U, 1U}) {
    const int sums = scaled->inputs[side], scale = scaled->inputs[1 - side];
    const Layer* product = producer_of(graph, sums);
    if (!has_bytes(product) || !is_by_row(graph, scale, sums) || !same_shapes(graph, sums, scaled->output())) continue;
    const Layer* sum = producer_of(graph, product->inputs[0]);
    if (!is_binary(sum, "add", 2) || !are_sums(shift->sums, product->weight("weight"), 1)) continue;
    for (const size_t at : {0U, 1U}) {
      const int steps = sum->inputs[1 - at], zero = sum->inputs[at];
      if (!same_shapes(graph, steps, sum->output()) || !is_by_row(graph, zero, steps)) continue;
      if (!are_same_elements(graph, shift->factors, {zero, scale})) continue;
      Layer copy = *scaled;
      copy.inputs = {insert_product(graph, *product, steps), scale};
      retire(graph, index, graph.insert_layer(std::move(copy)));
      return true;
    }
  }
  return false;
}

// A number whose reciprocal is this one in float32; 0 if there is none.
float with_reciprocal(float factor) {
  const float near = 1 / factor;
  for (const float scale : {near, std::nextafter(near, 0.0F), std::nextafter(near, INFINITY)}) {
    if (scale > 0 && std::isfinite(scale) && 1 / scale == factor) return scale;
  }
  return 0;
}

// clamp(round(x * constant), least, most) * weight
bool quantize_operand(Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (!has_bytes(&layer)) return false;
  const auto rounded = rounded_steps(graph, layer.inputs[0]);
  if (!rounded || rounded->factor < 0) return false;
  const Layer& product = graph.layers()[static_cast<size_t>(rounded->factor)];
  if (rounded->zero >= 0 || rounded->constant_zero != 0) return false;
  const float factor = static_cast<float>(*uniform_operand(&product, "mul")), scale = with_reciprocal(factor);
  if (scale == 0 || !same_shapes(graph, rounded->source, layer.inputs[0])) return false;
  const int32_t raised = rounded->least < 0 ? 128 : 0;  // kernels take unsigned bytes
  auto grid = std::make_shared<Quantization>();
  grid->scales = {scale}, grid->zero_points = {raised};
  grid->least = rounded->least + raised, grid->most = rounded->most + raised;
  grid->rounding = Quantization::Rounding::reciprocal;
  Layer quantize, divided, linear = layer;
  quantize.type = "quantize", quantize.name = product.name, quantize.inputs = {rounded->source};
  quantize.post.quantize = std::move(grid);
  divided.type = "binary", divided.name = layer.name;
  divided.attrs.set("function", std::string("mul"));
  divided.attrs.set("scalar", 1 / static_cast<double>(scale));
  divided.inputs = {insert_product(graph, std::move(linear), graph.insert_layer(std::move(quantize)))};
  retire(graph, index, graph.insert_layer(std::move(divided)));
  return true;
}

// The layer that gives a scale, or that now does.
int quantization_of(Graph& graph, const RoundedSteps& rounded) {
  const int made = origin(graph, rounded.scale);
  const Layer* known = producer_of(graph, made);
  if (known != nullptr && known->type == "dynamic_quantize") {
    const Attrs& attrs = known->attrs;
    const bool same = attrs.integer("least", 0) == rounded.least && attrs.integer("most", 255) == rounded.most &&
                      attrs.flag("reciprocal", false) && known->outputs[1] == made;
    if (!same || !are_same_elements(graph, known->inputs, {rounded.source})) return -1;
    if (attrs.flag("rows", false) && !same_shapes(graph, known->inputs[0], rounded.source)) return -1;
    const int zero = (rounded.least + rounded.most + 1) / 2;
    const bool fits = rounded.zero >= 0 ? origin(graph, rounded.zero) == known->outputs[2]
                                        : attrs.flag("symmetric", false) && rounded.constant_zero == zero;
    return fits ? graph.blob(made).producer : -1;
  }
  const auto range = range_of(graph, rounded);
  if (!range) return -1;
  Layer layer;
  layer.type = "dynamic_quantize", layer.name = known->name, layer.inputs = {range->source};
  layer.attrs.set("rows", int64_t{range->rows});
  layer.attrs.set("symmetric", int64_t{range->symmetric});
  layer.attrs.set("least", int64_t{rounded.least});
  layer.attrs.set("most", int64_t{rounded.most});
  layer.attrs.set("reciprocal", int64_t{1});
  layer.attrs.set("eps", range->eps);
  const int index = graph.blob(graph.insert_layer(std::move(layer))).producer;
  const std::vector<int> outputs = graph.layers()[static_cast<size_t>(index)].outputs;
  const auto instead = [&](int blob, int output) {
    const Shape shape = graph.blob(blob).desc.shape;
    graph.replace_uses(blob, with_same_elements(graph, output, shape, graph.blob(blob).name));
  };
  instead(made, outputs[1]);
  if (rounded.zero >= 0) instead(origin(graph, rounded.zero), outputs[2]);
  return index;
}

// clamp(round(x * (1 / scale)) + zero, least, most)
bool name_steps(Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  const auto rounded = layer.type == "activation" ? rounded_steps(graph, layer.output()) : std::nullopt;
  if (!rounded || rounded->scale < 0) return false;
  const Layer last = layer;
  const int found = quantization_of(graph, *rounded);
  if (found < 0) return false;
  const int steps = graph.layers()[static_cast<size_t>(found)].outputs[0];
  int result = with_same_elements(graph, steps, Shape(graph.blob(last.output()).desc.shape), last.name);
  if (rounded->zero >= 0 || rounded->constant_zero != 0) {
    Layer shifted;
    shifted.type = "binary", shifted.name = last.name, shifted.inputs = {result};
    shifted.attrs.set("function", std::string("add"));
    if (rounded->zero >= 0) {
      // The readers of the spelt zero point read the layer's own by now.
      const Layer& sum = graph.layers()[static_cast<size_t>(rounded->sum)];
      shifted.inputs.push_back(sum.inputs[rounded->zero_side]);
    } else {
      shifted.attrs.set("scalar", rounded->constant_zero);
    }
    result = graph.insert_layer(std::move(shifted));
  }
  retire(graph, index, result);
  return true;
}

// (steps + zero) - zero
bool drop_return(Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (!is_binary(&layer, "sub", 2)) return false;
  const Layer* sum = producer_of(graph, layer.inputs[0]);
  if (!is_binary(sum, "add", 2)) return false;
  const Layer* quantize = producer_of(graph, origin(graph, sum->inputs[0]));
  if (quantize == nullptr || quantize->type != "dynamic_quantize") return false;
  const int steps = sum->inputs[0], zero = quantize->outputs[2];
  if (origin(graph, steps) != quantize->outputs[0] || !same_shapes(graph, steps, layer.output())) return false;
  for (const int returned : {sum->inputs[1], layer.inputs[1]}) {
    if (origin(graph, returned) != zero || !is_by_row(graph, returned, steps)) return false;
  }
  retire(graph, index, steps);
  return true;
}

}  // namespace

bool compose_quantization(Graph& graph) {
  bool changed = false;
  // Each step names or drops layers that later steps look for.
  for (const auto step : {name_steps, drop_return, drop_constant_shift, drop_zero_shift, quantize_operand}) {
    for (size_t l = 0, count = graph.layers().size(); l < count; ++l) {
      changed |= step(graph, static_cast<int>(l));
    }
  }
  return changed;
}

}  // namespace softneuro
