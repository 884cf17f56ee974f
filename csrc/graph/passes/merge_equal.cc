// Layers that make masks and positions of the same blobs become one: frameworks spell them out anew for every block of
// a transformer. Small constants that are equal become one for that.
#include <algorithm>
#include <map>
#include <string>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

constexpr int64_t small = 4096;  // elements of a constant that is compared

bool may_merge(const Graph& graph, const Layer& layer) {
  static constexpr std::string_view whole[] = {"where",  "compare", "logical", "integer_binary",
                                               "expand", "cumsum",  "take",    "embedding"};
  if (layer.outputs.size() != 1 || layer.host != nullptr || !layer.post.empty()) return false;
  if (graph.is_output(layer.output())) return false;
  if (layer.type == "constant") return layer.weight("value")->elements() <= small;
  const bool is_real = graph.blob(layer.output()).desc.kind == ValueKind::real;
  return !is_real || std::find(std::begin(whole), std::end(whole), layer.type) != std::end(whole);
}

// Equal for layers that make the same.
std::string key_of(const Graph& graph, const Layer& layer) {
  std::string key = layer.type + "{" + layer.attrs.str() + "}" + graph.blob(layer.output()).desc.exact();
  for (const int input : layer.inputs) key += " " + std::to_string(input);
  for (const auto& [role, value] : layer.weights) {
    key += " " + role + ":" + std::string(dtype_name(value->dtype())) + ":";
    const bool looked_at = layer.type == "constant";  // others are large, and rarely the same but for being one
    key += looked_at ? value->identity() : std::to_string(reinterpret_cast<uintptr_t>(value.get()));
  }
  return key;
}

}  // namespace

bool merge_equal(Graph& graph) {
  std::map<std::string, int> made;  // blob by key
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    if (!may_merge(graph, layer)) continue;
    const int blob = layer.output();
    const auto [found, is_new] = made.try_emplace(key_of(graph, layer), blob);
    if (is_new || graph.consumers(blob).empty()) continue;
    graph.replace_uses(blob, found->second);
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
