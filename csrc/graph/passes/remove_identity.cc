// Drops layers that change nothing, and turns those that only rename axes into reshapes, which routines can run as
// views.
#include <algorithm>
#include <numeric>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

bool all_equal(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

// Whether there is one element behind each result, which is that element.
bool reduces_nothing(const Layer& layer, const Shape& in) {
  const auto& axes = layer.attrs.integers("axes");
  if (layer.attrs.text("function").starts_with("norm")) return false;  // which is the magnitude
  return std::all_of(axes.begin(), axes.end(), [&](int64_t axis) { return in[static_cast<int>(axis)] == 1; });
}

// The output is the input, element by element, whatever the values (NaN and infinities included).
bool is_identity(const Layer& layer, const Shape& in, const Shape& out) {
  const Attrs& attrs = layer.attrs;
  if (layer.type == "identity") return true;
  if (in != out) return false;
  if (layer.type == "reshape" || layer.type == "adaptive_pool2d" || layer.type == "pixel_shuffle") return true;
  if (layer.type == "slice") return attrs.integer("step", 1) == 1;
  if (layer.type == "pad") return all_equal(attrs.integers("pads"), 0);
  if (layer.type == "reduce") return reduces_nothing(layer, in);
  if (layer.type == "transpose") {
    std::vector<int64_t> order(static_cast<size_t>(in.rank()));
    std::iota(order.begin(), order.end(), 0);
    return attrs.integers("perm") == order;
  }
  if (layer.type == "binary" && attrs.find("scalar") != nullptr && attrs.real("scalar") == 1) {
    const std::string& function = attrs.text("function");
    return function == "mul" || (function == "div" && !attrs.flag("reversed", false));
  }
  // Bilinear would multiply neighbours by zero, which is not nothing to an infinity.
  if (layer.type == "upsample")
    return attrs.text("mode") == "nearest" && layer.weights.empty() && attrs.find("scale_h") == nullptr &&
           attrs.find("scale_w") == nullptr;
  if (layer.type == "pool2d")
    return all_equal(attrs.integers("kernel"), 1) && all_equal(attrs.integers("stride"), 1) &&
           all_equal(attrs.integers("padding", {}), 0);
  return false;
}

// Same elements in the same row-major order, under another shape.
bool is_reshape(const Layer& layer, const Shape& in, const Shape& out) {
  if (in.elements() != out.elements()) return false;
  if (layer.type == "reduce") return reduces_nothing(layer, in);
  if (layer.type == "transpose") {
    int64_t last = -1;
    for (int64_t axis : layer.attrs.integers("perm")) {
      if (in[static_cast<int>(axis)] == 1) continue;
      if (axis < last) return false;
      last = axis;
    }
    return true;
  }
  return false;
}

}  // namespace

bool remove_identity(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    Layer& layer = graph.layer(static_cast<int>(l));
    if (layer.inputs.size() != 1 || (!layer.post.empty() && layer.type != "quantize")) continue;
    const int input = layer.inputs[0];
    if (layer.type == "quantize") {
      // Values on the grid stay as they are.
      if (layer.post.activation.kind == ActivationKind::none &&
          same_quantization(graph.blob(input).desc, graph.blob(layer.output()).desc)) {
        retire(graph, static_cast<int>(l), input);
        changed = true;
      }
      continue;
    }
    const Shape in = graph.blob(input).desc.shape, out = graph.blob(layer.output()).desc.shape;
    if (is_identity(layer, in, out)) {
      retire(graph, static_cast<int>(l), input);
      changed = true;
      continue;
    }
    if (is_reshape(layer, in, out)) {
      layer.type = "reshape";
      layer.attrs = {};
      layer.attrs.set("shape", std::vector<int64_t>(out.begin(), out.end()));
      changed = true;
    }
    const Layer* before = producer_of(graph, input);
    if (layer.type == "reshape" && before != nullptr && before->type == "reshape" && before->post.empty()) {
      layer.inputs[0] = before->inputs[0];
      changed = true;
    }
  }
  return changed;
}

}  // namespace softneuro
