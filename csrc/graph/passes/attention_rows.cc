// Heads of one row that are put side by side behind an attention: it writes them so itself.
#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {

bool attention_rows(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& turn = graph.layers()[l];
    if (turn.type != "transpose" || !turn.post.empty()) continue;
    const int blob = turn.inputs[0];
    const Layer* made = producer_of(graph, blob);
    if (made == nullptr || made->type != "attention" || sole_reader(graph, blob) < 0) continue;
    if (turn.attrs.integers("perm") != std::vector<int64_t>{0, 2, 1, 3}) continue;
    Layer layer = *made;
    layer.attrs.set("rows_first", int64_t{!layer.attrs.flag("rows_first", false)});
    retire(graph, static_cast<int>(l), graph.insert_layer(std::move(layer)));
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
