// Rotary position embedding that a model spells out, x * cos + concat(-x[half:], x[:half]) * sin, becomes one layer.
#include <optional>
#include <utility>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

struct SpeltRotary {
  int x = -1, cosine = -1, sine = -1;  // blobs
  Constant known_cosine, known_sine;   // what is a weight of the product instead
};

const Layer* plain(const Graph& graph, int blob, std::string_view type) {
  const Layer* layer = producer_of(graph, blob);
  return layer != nullptr && layer->type == type && layer->post.empty() ? layer : nullptr;
}

// The half of a blob's rows that another is: 0 or 1; -1 if it is neither.
int half_of(const Graph& graph, int part, int blob) {
  const Layer* slice = plain(graph, part, "slice");
  if (slice == nullptr || slice->inputs[0] != blob || slice->attrs.integer("step", 1) != 1) return -1;
  const Shape& shape = graph.blob(blob).desc.shape;
  const int64_t size = shape[shape.rank() - 1], start = slice->attrs.integer("start");
  if (slice->attrs.integer("axis") != shape.rank() - 1 || size % 2 != 0) return -1;
  if (slice->attrs.integer("end") - start != size / 2) return -1;
  return start == 0 ? 0 : start == size / 2 ? 1 : -1;
}

// Whether a blob is concat(-x[half:], x[:half]).
bool is_turned(const Graph& graph, int blob, int x) {
  const Layer* joined = plain(graph, blob, "concat");
  const Shape& shape = graph.blob(x).desc.shape;
  if (joined == nullptr || joined->inputs.size() != 2 || joined->attrs.integer("axis") != shape.rank() - 1)
    return false;
  const Layer* negated = plain(graph, joined->inputs[0], "binary");
  if (negated == nullptr || negated->inputs.size() != 1 || negated->attrs.text("function") != "mul") return false;
  if (negated->attrs.find("scalar") == nullptr || negated->attrs.real("scalar") != -1) return false;
  return half_of(graph, negated->inputs[0], x) == 1 && half_of(graph, joined->inputs[1], x) == 0;
}

// A product's operands, in either order: a blob, and a blob or a constant.
struct Factor {
  int blob = -1, other = -1;
  Constant known;
};
std::optional<Factor> factors(const Graph& graph, int blob, bool swapped) {
  const Layer* product = plain(graph, blob, "binary");
  if (product == nullptr || product->attrs.text("function") != "mul") return {};
  if (product->inputs.size() == 2) {
    return Factor{product->inputs[swapped ? 1 : 0], product->inputs[swapped ? 0 : 1], nullptr};
  }
  const Constant* known = product->find_weight("other");
  if (known == nullptr || swapped) return {};
  return Factor{product->inputs[0], -1, *known};
}

std::optional<SpeltRotary> match(const Graph& graph, const Layer& sum) {
  if (sum.type != "binary" || sum.inputs.size() != 2 || !sum.post.empty() || sum.attrs.text("function") != "add") {
    return {};
  }
  if (graph.blob(sum.output()).desc.shape.rank() != 4) return {};
  for (int order = 0; order < 8; ++order) {
    const auto side = static_cast<size_t>(order & 1);
    const auto straight = factors(graph, sum.inputs[side], (order & 2) != 0);
    const auto turned = factors(graph, sum.inputs[1 - side], (order & 4) != 0);
    if (!straight || !turned || !is_turned(graph, turned->blob, straight->blob)) continue;
    if (graph.blob(straight->blob).desc.shape != graph.blob(sum.output()).desc.shape) continue;
    return SpeltRotary{straight->blob, straight->other, turned->other, straight->known, turned->known};
  }
  return {};
}

// The blob of an angle's function with four axes; -1 if rows are not whole.
int angle(Graph& graph, int blob, const Constant& known, int64_t width, const std::string& name) {
  const Shape shape = known != nullptr ? known->shape() : graph.blob(blob).desc.shape;
  if (shape.rank() < 1 || shape.rank() > 4 || shape[shape.rank() - 1] != width) return -1;
  if (known != nullptr) {
    Layer constant;
    constant.name = name, constant.type = "constant";
    constant.set_weight("value", known);
    blob = graph.insert_layer(std::move(constant));
  }
  Shape full;
  for (int axis = shape.rank(); axis < 4; ++axis) full.push_back(1);
  for (const int64_t size : shape) full.push_back(size);
  return with_same_elements(graph, blob, full, name);
}

}  // namespace

bool compose_rotary(Graph& graph) {
  bool changed = false;
  for (size_t l = 0, count = graph.layers().size(); l < count; ++l) {
    const std::optional<SpeltRotary> found = match(graph, graph.layers()[l]);
    if (!found) continue;
    const std::string name = graph.layers()[l].name;
    const int64_t width = graph.blob(found->x).desc.shape[3];
    const int cosine = angle(graph, found->cosine, found->known_cosine, width, name);
    const int sine = angle(graph, found->sine, found->known_sine, width, name);
    if (cosine < 0 || sine < 0) continue;
    Layer layer;
    layer.name = name, layer.type = "rotary", layer.inputs = {found->x, cosine, sine};
    retire(graph, static_cast<int>(l), graph.insert_layer(std::move(layer)));
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
