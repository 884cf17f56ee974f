// Products of a weight's bytes and of what is brought to eight bits in the run become one layer, dynamic_linear or
// dynamic_conv2d, which finds the scale itself:
//
//   (steps * weight) * scale * constant        sums of whole numbers, made real
//   (steps * scale) * weight + bias            reals on a grid
//
// where dynamic_quantize makes steps and scale. Constants that follow are fold_affine's.
#include <algorithm>
#include <optional>
#include <string>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"
#include "graph/passes/spelt_quantization.h"
#include "layers/contract/registry.h"

namespace softneuro {
namespace {

bool by_row(const Layer& quantize) { return quantize.attrs.flag("rows", false); }

// Whether a blob is the scale of all, or of each of the rows of something of this shape.
bool is_scale(const Graph& graph, const Layer& quantize, int blob, const Shape& shape) {
  if (origin(graph, blob) != quantize.outputs[1]) return false;
  return is_along_rows(graph.blob(blob).desc.shape, shape);
}

struct Operand {
  const Layer* quantize;  // it is valid until the graph changes
  bool scaled;
};

std::optional<Operand> steps_of(const Graph& graph, int blob) {
  const Layer* layer = producer_of(graph, blob);
  return layer != nullptr && layer->type == "dynamic_quantize" && layer->outputs[0] == blob
             ? std::optional(Operand{layer, false})
             : std::nullopt;
}

// Finds the quantization that a product's operand comes of: its steps, or the reals that they stand for.
std::optional<Operand> operand_of(const Graph& graph, int blob) {
  for (const bool rows_stay : {false, true}) {
    const int source = origin(graph, blob, rows_stay);
    auto found = steps_of(graph, source);
    if (const Layer* product = producer_of(graph, source); !found && is_binary(product, "mul", 2)) {
      for (size_t side = 0; side < 2 && !found; ++side) {
        found = steps_of(graph, origin(graph, product->inputs[side], rows_stay));
        if (!found) continue;
        const Shape& shape = graph.blob(product->inputs[side]).desc.shape;
        if (!is_scale(graph, *found->quantize, product->inputs[1 - side], shape)) found.reset();
        if (found) found->scaled = true;
      }
    }
    if (found && by_row(*found->quantize) == rows_stay) return found;
  }
  return std::nullopt;
}

bool has_bytes(const Layer& layer) {
  if (layer.type != "linear" && layer.type != "conv2d") return false;
  return layer.main_inputs() == 1 && layer.weight("weight")->desc().quantization != nullptr;
}

// The layer that does it all, of an input that is yet to get the shape of the operand.
Layer dynamic_layer(const Layer& product, const Layer& quantize) {
  Layer layer = product;
  layer.type = "dynamic_" + product.type;
  for (const char* name : {"rows", "least", "most", "symmetric", "reciprocal", "eps"}) {
    const AttrValue* value = quantize.attrs.find(name);
    if (value != nullptr && (product.type == "linear" || std::string_view(name) != "rows")) {
      layer.attrs.set(name, *value);
    }
  }
  layer.inputs[0] = quantize.inputs[0];
  return layer;
}

bool is_done_by_some(const Graph& graph, int index, const Layer& layer) {
  Problem problem = graph.problem(index, 1);
  problem.layer = &layer;
  problem.in[0].quantization = nullptr;
  const auto routines = accepting_routines(problem);
  return std::any_of(routines.begin(), routines.end(), [](const Routine* one) { return !one->info().fallback; });
}

// The layer that makes reals of sums: it multiplies them by the scale. -1 if there is none.
int scaling_of(const Graph& graph, int sums, const Layer& quantize) {
  int reader = sole_reader(graph, sums);
  while (reader >= 0) {
    const Layer& layer = graph.layers()[static_cast<size_t>(reader)];
    if (layer.type != "reshape" || !layer.post.empty()) break;
    const int shaped = layer.output();
    if (by_row(quantize) && !keeps_rows(graph.blob(sums).desc.shape, graph.blob(shaped).desc.shape)) return -1;
    sums = shaped;
    reader = sole_reader(graph, sums);
  }
  if (reader < 0) return -1;
  const Layer& product = graph.layers()[static_cast<size_t>(reader)];
  const Shape& shape = graph.blob(sums).desc.shape;
  if (!is_binary(&product, "mul", 2) || graph.blob(product.output()).desc.shape != shape) return -1;
  const int factor = product.inputs[product.inputs[0] == sums ? 1 : 0];
  if (is_scale(graph, quantize, factor, shape)) return reader;
  const Layer* scaled = producer_of(graph, factor);
  const bool constant = is_binary(scaled, "mul", 1) && is_scale(graph, quantize, scaled->inputs[0], shape);
  return constant ? reader : -1;
}

// Takes the scale out of the product by which sums become real: what is left is a constant, or nothing.
void take_scale_out(Graph& graph, int index, const Layer& quantize) {
  Layer& product = graph.layer(index);
  const auto is_own = [&](int blob) { return origin(graph, blob) == quantize.outputs[1]; };
  const auto is_factor = [&](int blob) {
    const Layer* layer = producer_of(graph, blob);
    return is_own(blob) || (is_binary(layer, "mul", 1) && is_own(layer->inputs[0]));
  };
  const size_t side = is_factor(product.inputs[0]) ? 0 : 1;
  const int factor = product.inputs[side], sums = product.inputs[1 - side];
  if (is_own(factor)) return retire(graph, index, sums);
  const Layer& scaled = *producer_of(graph, factor);
  product.attrs = scaled.attrs, product.weights = scaled.weights;
  product.inputs = {sums};
}

}  // namespace

bool dynamic_products(Graph& graph) {
  bool changed = false;
  for (size_t l = 0, count = graph.layers().size(); l < count; ++l) {
    const int index = static_cast<int>(l);
    const Layer& product = graph.layers()[l];
    if (!has_bytes(product)) continue;
    const auto operand = operand_of(graph, product.inputs[0]);
    if (!operand || (product.type == "conv2d" && by_row(*operand->quantize))) continue;
    const Layer quantize = *operand->quantize;
    int scaling = -1;
    if (!operand->scaled) {
      if (product.find_weight("bias") != nullptr || !product.post.empty()) continue;
      scaling = scaling_of(graph, product.output(), quantize);
      if (scaling < 0) continue;
    }
    Layer layer = dynamic_layer(product, quantize);
    if (!is_done_by_some(graph, index, layer)) continue;
    if (scaling >= 0) take_scale_out(graph, scaling, quantize);
    const Shape shape = graph.blob(product.inputs[0]).desc.shape;
    layer.inputs[0] = with_same_elements(graph, layer.inputs[0], shape, layer.name);
    graph.layer(index) = std::move(layer);
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
