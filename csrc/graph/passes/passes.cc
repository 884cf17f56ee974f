#include "graph/passes/passes.h"

namespace softneuro {

void optimize(Graph& graph) {
  using Pass = bool (*)(Graph&);
#define SN_PASS(name) name,
  static constexpr Pass passes[] = {
#include "graph/passes/passes.inc"
      nullptr};
#undef SN_PASS
  // Passes remove, absorb or name layers, or move reshapes towards the outputs, so this ends; the bound guards against
  // a pair of passes that undo each other.
  graph.compact();  // dead layers would count as readers
  bool changed = true;
  for (int round = 0; changed && round < 100; ++round) {
    changed = false;
    for (const Pass* pass = passes; *pass != nullptr; ++pass) {
      if ((*pass)(graph)) {
        graph.compact();
        changed = true;
      }
    }
  }
  graph.compact();
}

}  // namespace softneuro
