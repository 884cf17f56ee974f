#include "net/pack_ahead.h"

#include "base/threads.h"

namespace softneuro {
namespace {

struct Work {
  const FusedLayers& fused;
  const Assignment& assignment;
  int threads;
  PackedCache& cache;

  std::shared_ptr<const Packed> packed(int index, bool make) const {
    const RoutineChoice& choice = assignment.layers[static_cast<size_t>(index)];
    if (choice.routine == nullptr || !isa_available(choice.routine->info().isa)) return nullptr;
    try {
      const Problem problem = fused.problem(index, threads);
      if (problem.out().shape.elements() == 0 || !accepts(*choice.routine, problem).accepted()) return nullptr;
      return make ? cache.get(choice, problem) : cache.find(choice, problem);
    } catch (...) {
      return nullptr;
    }
  }
};

}  // namespace

std::vector<std::shared_ptr<const Packed>> pack_ahead(const Graph& graph, const FusedLayers& fused,
                                                      const Assignment& assignment, int threads, PackedCache& cache) {
  if (threads == 1 || !cache.takes_time()) return {};
  std::vector<int> layers;
  for (int index = 0; index < static_cast<int>(graph.layers().size()); ++index)
    if (!fused.covered(index) && !fused.layer(index).weights.empty()) layers.push_back(index);
  const Work work{fused, assignment, threads, cache};
  std::vector<std::shared_ptr<const Packed>> ahead(layers.size());
  // What other shapes have packed is there already, and of a few there is nothing to gain.
  std::vector<size_t> missing;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!(ahead[i] = work.packed(layers[i], false))) missing.push_back(i);
  }
  if (missing.size() < 2) return ahead;
  ThreadPool pool(threads);
  pool.parallel_for()(static_cast<int64_t>(missing.size()), [&](int64_t task) {
    const size_t i = missing[static_cast<size_t>(task)];
    ahead[i] = work.packed(layers[i], true);
  });
  return ahead;
}

}  // namespace softneuro
