#include "tune/measure/unpacked.h"

#include "base/arena.h"
#include "tune/measure/stand_ins.h"

namespace softneuro {

std::shared_ptr<const Packed> Unpacked::get(const RoutineChoice& choice, const Problem& problem) {
  Packing packing = choice.routine->packing(problem, choice.tuning);
  if (packing.empty()) return nullptr;
  // What is made of no weights is nobody else's.
  const bool own = problem.layer->weights.empty();
  auto& known = known_[own ? "own " + std::to_string(known_.size()) : key(choice, problem)];
  if (known != nullptr) return known;
  if (!StandIns::stands_in(*choice.routine, problem, choice.tuning)) {
    known = PackedCache::shared().get(choice, problem);
  } else {
    // Nobody writes there, so that the system gives addresses and no memory.
    const auto held = std::make_shared<AlignedBuffer>(packing.bytes());
    known = std::make_shared<const Packed>(std::move(packing),
                                           std::shared_ptr<std::byte>(held, static_cast<std::byte*>(held->data())));
  }
  return known;
}

size_t foretold_peak(const Graph& graph, const Assignment& plan, int threads) {
  Unpacked cache;
  return Net::foresee(graph, plan, threads, cache).stats.peak_bytes();
}

}  // namespace softneuro
