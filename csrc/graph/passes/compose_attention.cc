// Attention that a model spells out, softmax(scale * q * k^T + mask) * v, becomes one layer, which need not have all
// scores in memory. Products, scales of either operand or of the scores, one mask, reshapes of leading axes.
#include <cmath>
#include <optional>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

struct SpeltAttention {
  int q = -1, k = -1, v = -1, mask = -1;  // k is [..., keys, depth], or [..., depth, keys] if `turned`
  Constant added = nullptr;               // a mask that is a weight of the sum
  bool turned = false, safe = false;
  bool zero_nan = false;  // weights that are NaN are made zeros
  double scale = 1;
  Shape scores;  // of the softmax
};

// x * s, s * x or x / s of one number.
std::optional<double> factor_of(const Layer& layer) {
  if (layer.type != "binary" || layer.inputs.size() != 1 || !layer.post.empty()) return {};
  const std::string function = layer.attrs.text("function", "");
  const bool divides = function == "div";
  if ((function != "mul" && !divides) || (divides && layer.attrs.flag("reversed", false))) return {};
  double number = 0;
  if (const Constant* other = layer.find_weight("other")) {
    if ((*other)->elements() != 1) return {};
    number = static_cast<double>((*other)->values().get()[0]);
  } else if (layer.attrs.find("scalar") != nullptr) {
    number = layer.attrs.real("scalar");
  } else {
    return {};
  }
  const double factor = divides ? 1 / number : number;
  return std::isfinite(factor) ? std::optional(factor) : std::nullopt;
}

class AttentionMatch {
 public:
  explicit AttentionMatch(Graph& graph) : graph_(graph) {}

  std::optional<SpeltAttention> match(const Layer& context) const {
    if (!is_product(context) || context.attrs.flag("transpose_b", false)) return {};
    SpeltAttention found;
    found.v = context.inputs[1];
    const Layer* softmax = sole_producer(context.inputs[0]);
    if (softmax != nullptr && softmax->type == "where") softmax = without_nan(*softmax, found);
    if (softmax == nullptr || softmax->type != "softmax" || !softmax->post.empty()) return {};
    found.scores = shape(softmax->output());
    const int rank = found.scores.rank();
    if (softmax->attrs.flag("log", false) || softmax->attrs.integer("axis") != rank - 1 || rank < 2) return {};
    found.safe = softmax->attrs.flag("safe", false);
    const Layer* made = sole_producer(softmax->inputs[0]);
    if (made != nullptr && made->type == "binary" && !factor_of(*made)) made = without_mask(*made, found);
    made = through_factors(made, found);
    if (made == nullptr || !is_product(*made)) return {};
    found.q = without_factors(made->inputs[0], found);
    found.k = without_factors(made->inputs[1], found);
    found.turned = !made->attrs.flag("transpose_b", false);
    return found;
  }

 private:
  const Shape& shape(int blob) const { return graph_.blob(blob).desc.shape; }

  static bool is_product(const Layer& layer) {
    return layer.type == "matmul" && layer.inputs.size() == 2 && layer.post.empty() &&
           !layer.attrs.flag("transpose_a", false);
  }

  // Whether two shapes differ in their leading axes at most.
  static bool keeps_matrices(const Shape& a, const Shape& b) {
    const int n = a.rank(), m = b.rank();
    return n >= 2 && m >= 2 && a[n - 1] == b[m - 1] && a[n - 2] == b[m - 2];
  }

  // The layer that makes a blob which nobody else reads, through reshapes that keep matrices.
  const Layer* sole_producer(int blob) const {
    while (true) {
      if (sole_reader(graph_, blob) < 0) return nullptr;
      const Layer* layer = producer_of(graph_, blob);
      const bool passes = layer != nullptr && layer->type == "reshape" && layer->post.empty() &&
                          keeps_matrices(shape(layer->inputs[0]), shape(blob));
      if (!passes) return layer;
      blob = layer->inputs[0];
    }
  }

  // Returns the layer that makes p of where(p != p, 0, p); null if it is not that.
  const Layer* without_nan(const Layer& where, SpeltAttention& found) const {
    const int weights = where.inputs[2];
    const Layer* unequal = sole_producer(where.inputs[0]);
    if (unequal == nullptr || unequal->type != "compare" || unequal->attrs.text("function") != "ne") return nullptr;
    const Constant zero = constant_of(graph_, where.inputs[1]);
    const bool is_zero = zero != nullptr && zero->elements() == 1 && zero->values().get()[0] == 0;
    if (!is_zero || unequal->inputs != std::vector<int>{weights, weights}) return nullptr;
    if (graph_.is_output(weights) || graph_.consumers(weights).size() != 2) return nullptr;
    found.zero_nan = true;
    return producer_of(graph_, weights);
  }

  // Returns the layer that an addition adds a mask to, and takes the mask; null if it adds none.
  const Layer* without_mask(const Layer& sum, SpeltAttention& found) const {
    if (sum.type != "binary" || sum.attrs.text("function", "") != "add" || !sum.post.empty()) return nullptr;
    if (shape(sum.output()) != found.scores) return nullptr;
    const auto scores_at = [&](int blob, const Shape& mask) -> const Layer* {
      if (shape(blob) != found.scores || !broadcasts(mask, found.scores)) return nullptr;
      const Layer* made = sole_producer(blob);
      SpeltAttention behind;
      const Layer* product = through_factors(made, behind);
      return product != nullptr && is_product(*product) ? made : nullptr;
    };
    if (const Constant* other = sum.find_weight("other")) {
      found.added = *other;
      return scores_at(sum.inputs[0], (*other)->shape());
    }
    for (size_t side = 0; side < 2 && sum.inputs.size() == 2; ++side) {
      found.mask = sum.inputs[1 - side];
      if (const Layer* made = scores_at(sum.inputs[side], shape(found.mask))) return made;
    }
    return nullptr;
  }

  // The layer wants masks with keys in full, other axes in full or one.
  static bool broadcasts(const Shape& mask, const Shape& scores) {
    if (mask.rank() > scores.rank() || mask.rank() < 1 || scores.rank() > 4) return false;
    for (int i = 1; i <= mask.rank(); ++i) {
      const int64_t size = mask[mask.rank() - i], wanted = scores[scores.rank() - i];
      if (size != wanted && (size != 1 || i == 1)) return false;
    }
    return true;
  }

  // Returns the layer that is scaled. Its scales are collected once it is known to be a product.
  const Layer* through_factors(const Layer* layer, SpeltAttention& found) const {
    double scale = 1;
    while (layer != nullptr) {
      const std::optional<double> factor = factor_of(*layer);
      if (!factor) break;
      scale *= *factor;
      layer = sole_producer(layer->inputs[0]);
    }
    if (layer != nullptr && is_product(*layer)) found.scale *= scale;
    return layer;
  }
  int without_factors(int blob, SpeltAttention& found) const {
    for (const Layer* layer = producer_of(graph_, blob); layer != nullptr; layer = producer_of(graph_, blob)) {
      const std::optional<double> factor = factor_of(*layer);
      if (!factor) break;
      found.scale *= *factor;
      blob = layer->inputs[0];
    }
    return blob;
  }

  Graph& graph_;
};

class AttentionRewrite {
 public:
  AttentionRewrite(Graph& graph, std::string name) : graph_(graph), name_(std::move(name)) {}

  // The blob that takes the place of the product's; -1 if operands are such as the layer does not have.
  int attention(const SpeltAttention& found, const Shape& out) {
    const int rank = found.scores.rank();
    const int64_t rows = found.scores[rank - 2], keys = found.scores[rank - 1];
    const int64_t heads = rank > 2 ? found.scores[rank - 3] : 1;
    const int64_t batch = rank > 3 ? found.scores.product(0, rank - 3) : 1;
    const auto last = [&](int blob) { return shape(blob)[shape(blob).rank() - 1]; };
    const int64_t depth = last(found.q), width = last(found.v);
    // Operands with fewer matrices than there are scores are broadcast, which is another matter.
    if (shape(found.q).elements() != batch * heads * rows * depth) return -1;
    if (shape(found.k).elements() != batch * heads * keys * depth) return -1;
    if (shape(found.v).elements() != batch * heads * keys * width) return -1;
    const int k = found.turned ? turned(found.k) : found.k;
    Layer layer;
    layer.name = name_, layer.type = "attention";
    layer.attrs.set("scale", found.scale);
    layer.attrs.set("nan_if_empty", int64_t{!found.safe && !found.zero_nan});
    if (found.zero_nan) layer.attrs.set("zero_nan", int64_t{1});
    layer.inputs = {with_same_elements(graph_, found.q, {batch, heads, rows, depth}, name_),
                    with_same_elements(graph_, k, {batch, heads, keys, depth}, name_),
                    with_same_elements(graph_, found.v, {batch, heads, keys, width}, name_)};
    const int mask = found.added != nullptr ? constant(found.added) : found.mask;
    if (mask >= 0) layer.inputs.push_back(with_same_elements(graph_, mask, of_rank_4(mask), name_));
    return with_same_elements(graph_, graph_.insert_layer(std::move(layer)), out, name_);
  }

 private:
  const Shape& shape(int blob) const { return graph_.blob(blob).desc.shape; }

  Shape of_rank_4(int blob) const {
    Shape full;
    for (int i = shape(blob).rank(); i < 4; ++i) full.push_back(1);
    for (const int64_t size : shape(blob)) full.push_back(size);
    return full;
  }

  int constant(const Constant& value) {
    Layer layer;
    layer.name = name_, layer.type = "constant";
    layer.set_weight("value", value);
    return graph_.insert_layer(std::move(layer));
  }

  int turned(int blob) {
    const int rank = shape(blob).rank();
    std::vector<int64_t> perm;
    for (int64_t axis = 0; axis < rank; ++axis) perm.push_back(axis);
    std::swap(perm[static_cast<size_t>(rank) - 1], perm[static_cast<size_t>(rank) - 2]);
    Layer layer;
    layer.name = name_, layer.type = "transpose", layer.inputs = {blob};
    layer.attrs.set("perm", perm);
    return graph_.insert_layer(std::move(layer));
  }

  Graph& graph_;
  std::string name_;
};

}  // namespace

bool compose_attention(Graph& graph) {
  bool changed = false;
  for (size_t l = 0, count = graph.layers().size(); l < count; ++l) {
    const int index = static_cast<int>(l);
    const Layer& context = graph.layers()[l];
    if (context.type != "matmul") continue;
    const std::optional<SpeltAttention> found = AttentionMatch(graph).match(context);
    if (!found) continue;
    const Shape out = graph.blob(context.output()).desc.shape;
    const int made = AttentionRewrite(graph, context.name).attention(*found, out);
    if (made < 0) continue;
    retire(graph, index, made);
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
