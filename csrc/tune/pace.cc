#include "tune/pace.h"

#include <algorithm>
#include <map>

namespace softneuro {
namespace {

// The best of each routine, fastest first: as many as might be the fastest of all, had the machine been slower or
// faster for some of them.
std::vector<Candidate*> finalists(const std::vector<Candidate*>& measured) {
  constexpr size_t most = 3;
  constexpr double within = 1.6;  // of the fastest one's time
  std::vector<Candidate*> sorted;
  for (Candidate* candidate : measured) {
    if (candidate->measured && candidate->seconds > 0) sorted.push_back(candidate);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
  std::vector<Candidate*> best;
  for (Candidate* candidate : sorted) {
    if (best.size() == most || candidate->seconds > within * sorted[0]->seconds) break;
    const bool fresh = std::none_of(best.begin(), best.end(), [&](const Candidate* other) {
      return other->choice.routine == candidate->choice.routine;
    });
    if (fresh) best.push_back(candidate);
  }
  return best;
}

}  // namespace

void bring_to_one_pace(std::span<const TimedLayer> layers, Profiler& profiler, double allowance) {
  std::vector<std::vector<Candidate*>> finals;
  std::vector<Profiler::Entry> entries;
  for (const TimedLayer& layer : layers) {
    finals.push_back(finalists(layer.candidates));
    for (const Candidate* candidate : finals.back()) entries.push_back({layer.problem, candidate});
  }
  if (entries.size() < 2) return;
  const std::vector<double> seconds = profiler.compare(entries, allowance);
  if (seconds.empty()) return;
  auto next = seconds.begin();
  for (size_t i = 0; i < layers.size(); ++i) {
    std::map<const Routine*, double> factors;
    double usual = 1;
    for (const Candidate* candidate : finals[i]) {
      const double factor = *next++ / candidate->seconds;
      if (factors.empty()) usual = factor;
      factors[candidate->choice.routine] = factor;
    }
    for (Candidate* candidate : layers[i].candidates) {
      const auto own = factors.find(candidate->choice.routine);
      if (candidate->measured) candidate->seconds *= own != factors.end() ? own->second : usual;
    }
  }
}

}  // namespace softneuro
