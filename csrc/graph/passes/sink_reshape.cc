// Reshapes that keep rows, the last axis, move behind layers that work on each row alike. What such a layer's result is
// then joined with, a bias or a residual, meets it without one, and two that undo each other meet.
#include <map>
#include <utility>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

// Whether shapes differ in the last axis at most.
bool same_rows(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank() || a.rank() == 0) return false;
  for (int axis = 0; axis + 1 < a.rank(); ++axis) {
    if (a[axis] != b[axis]) return false;
  }
  return true;
}

class Sinking {
 public:
  explicit Sinking(Graph& graph) : graph_(graph) {}

  bool run() {
    std::vector<std::pair<int, int>> sunk;  // layer, and what it makes before the reshape
    for (size_t l = 0, count = graph_.layers().size(); l < count; ++l) {
      const int index = static_cast<int>(l);
      const Layer& layer = graph_.layers()[l];
      if (layer.outputs.size() != 1) continue;
      const int out = layer.output();
      if (layer.type == "reshape" && layer.post.empty()) {
        const int source = layer.inputs[0];
        if (keeps_rows(shape(source), shape(out)))
          before_[out] = before_.contains(source) ? before_.at(source) : source;
        continue;
      }
      const int made = moved(layer);
      if (made < 0) continue;
      before_[out] = made;
      sunk.emplace_back(index, made);
    }
    for (const auto& [index, made] : sunk) {
      const Layer& layer = graph_.layers()[static_cast<size_t>(index)];
      const std::string name = layer.name;
      const Shape wanted = shape(layer.output());
      retire(graph_, index, with_same_elements(graph_, made, wanted, name));
    }
    return !sunk.empty();
  }

 private:
  const Shape& shape(int blob) const { return graph_.blob(blob).desc.shape; }

  // Adds a copy of the layer that reads its inputs as they were before they got other shapes, and returns the copy's
  // blob; -1 if the layer needs these shapes.
  int moved(const Layer& layer) {
    const bool product = layer.type == "linear" || layer.type == "dynamic_linear" || layer.type == "linear_blocks";
    const bool known = product || layer.type == "activation" || layer.type == "binary";
    if (!known || layer.post.residual) return -1;
    Layer copy = layer;
    if (layer.inputs.size() == 2) {
      if (layer.type != "binary" || !moves_two(copy)) return -1;
    } else if (!before_.contains(layer.inputs[0])) {
      return -1;
    } else {
      const Shape now = shape(layer.inputs[0]);
      copy.inputs[0] = before_.at(layer.inputs[0]);
      if (const Constant* other = layer.find_weight("other")) {
        const Constant flat = flattened(*other);
        if (flat == nullptr || !same_rows(now, shape(layer.output()))) return -1;
        copy.set_weight("other", flat);
      }
    }
    return graph_.insert_layer(std::move(copy));
  }

  // A constant with one value for each place in a row, or one for all; else null.
  static Constant flattened(const Constant& other) {
    const Shape& own = other->shape();
    const int64_t row = own.rank() == 0 ? 1 : own[own.rank() - 1];
    if (own.elements() != row) return nullptr;
    if (own.rank() <= 1) return other;
    TensorDesc desc = other->desc();
    desc.shape = {row};
    return std::make_shared<const ConstantData>(other, std::move(desc));
  }

  // Two operands of the same rows, or one row for all on a side.
  bool moves_two(Layer& copy) {
    const Shape out = shape(copy.output());
    for (size_t side = 0; side < 2; ++side) {
      const int large = copy.inputs[side], small = copy.inputs[1 - side];
      if (!before_.contains(large) || !same_rows(shape(large), out)) continue;
      const Shape rows = shape(before_.at(large));
      if (before_.contains(small) && same_rows(shape(small), out) && same_rows(rows, shape(before_.at(small)))) {
        copy.inputs = {before_.at(copy.inputs[0]), before_.at(copy.inputs[1])};
        return true;
      }
      const Shape own = shape(small);
      const int64_t row = own.rank() == 0 ? 1 : own[own.rank() - 1];
      if (own.elements() == row) {
        copy.inputs[side] = before_.at(large);
        if (own.rank() > 1) copy.inputs[1 - side] = with_same_elements(graph_, small, {row}, copy.name);
        return true;
      }
    }
    return false;
  }

  Graph& graph_;
  std::map<int, int> before_;  // by blob: what has the same rows, or will have once this is done
};

}  // namespace

bool sink_reshape(Graph& graph) { return Sinking(graph).run(); }

}  // namespace softneuro
