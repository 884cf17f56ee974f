#include "providers/ort/graph/patterns.h"

#include <algorithm>
#include <optional>
#include <set>

#include "providers/ort/graph/wires.h"
#include "providers/ort/lower/quantized_values.h"

namespace softneuro::ort {
namespace {

class IntegerProducts : Wires {
 public:
  using Wires::is_taken;
  using Wires::readers;
  using Wires::Wires;

  struct Match {
    int last, scaled;
    int factor;  // which other products may have, too, where their weights' scales are equal
    std::set<int> inner;
    std::vector<int> inputs;  // of the runtime's own op
  };

  // cast(q * w) * (scale of q * scale of w) + bias
  std::optional<Match> match(int product) const {
    const std::vector<int>& from = node(product).inputs;
    if (from.size() < 3 || !is_constant(from[1]) || graph().value(from[1]).constant->dims.size() != 2) return {};
    const int maker = producer_of(from[0]);
    if (maker < 0 || !is_dynamic_quantize(node(maker)) || from[2] != node(maker).outputs[2]) return {};
    const int cast = only_reader(product), scaled = cast < 0 ? -1 : only_reader(cast);
    if (scaled < 0 || node(cast).op != "Cast" || !node(cast).domain.empty()) return {};
    if (ElementType(static_cast<int>(node(cast).integer("to", 0))) != ElementType(DType::float32)) return {};
    const int factor = producer_of(other_operand(scaled, "Mul", node(cast).outputs[0]));
    if (factor < 0) return {};
    const int scale = node(maker).outputs[1], weight_scale = other_operand(factor, "Mul", scale);
    if (!is_list(weight_scale)) return {};
    const int zero = from.size() > 3 ? from[3] : -1;
    Match found{scaled, scaled, factor, {product, cast}, {from[0], from[1], scale, weight_scale, from[2], zero}};
    const int add = only_reader(scaled), bias = add < 0 ? -1 : other_operand(add, "Add", node(scaled).outputs[0]);
    const int64_t columns = graph().value(from[1]).constant->dims[1];
    if (is_list(bias) && graph().value(bias).constant->dims == std::vector{columns}) {
      found.last = add;
      found.inner.insert(scaled);
      found.inputs.push_back(bias);
    }
    return found;
  }

 private:
  bool is_constant(int id) const { return id >= 0 && graph().value(id).constant; }
  bool is_list(int id) const {
    return is_constant(id) && graph().value(id).constant->type == DType::float32 &&
           graph().value(id).constant->dims.size() <= 1;
  }
};

}  // namespace

void merge_integer_products(HostGraph& graph) {
  const auto is_product = [](const HostNode& node) { return node.op == "MatMulInteger" && node.domain.empty(); };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_product)) return;
  const IntegerProducts products(graph);
  std::vector<IntegerProducts::Match> matches;
  std::set<int> scaled, gone;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!is_product(graph.nodes[n])) continue;
    auto found = products.match(static_cast<int>(n));
    if (!found || products.is_taken(found->last, found->inner) || products.is_taken(found->factor, {})) continue;
    scaled.insert(found->scaled);
    matches.push_back(std::move(*found));
  }
  for (IntegerProducts::Match& match : matches) {
    const std::vector<int>& readers = products.readers(match.factor);
    if (readers.empty() || !std::all_of(readers.begin(), readers.end(), [&](int n) { return scaled.contains(n); }))
      continue;
    if (!gone.contains(match.factor)) match.inner.insert(match.factor);
    HostNode& node = graph.nodes[static_cast<size_t>(match.last)];
    stand_for(graph, node, "MatMulIntegerToFloat", match.inner);
    node.inputs = match.inputs;
    gone.insert(match.inner.begin(), match.inner.end());
  }
  remove_nodes(graph, gone);
}

}  // namespace softneuro::ort
