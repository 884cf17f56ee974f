#include "tune/measure/pace.h"

#include <algorithm>
#include <map>

namespace softneuro {
namespace {

// The best of each routine, fastest first: as many as might be the fastest of all, had the machine been slower or
// faster for some of them. A layer without fresh ones has the best alone, which tells about the pace.
std::vector<Candidate*> finalists(const TimedLayer& layer) {
  const size_t most = layer.fresh.empty() ? 1 : 3;
  constexpr double within = 1.6;  // of the fastest one's time
  std::vector<Candidate*> sorted;
  for (const auto* list : {&layer.fresh, &layer.recalled}) {
    for (Candidate* candidate : *list) {
      if (candidate->measured && candidate->seconds > 0) sorted.push_back(candidate);
    }
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

double median_or(std::vector<double> values, double none) {
  if (values.empty()) return none;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void bring_to_one_pace(std::span<const TimedLayer> layers, Profiler& profiler, double allowance) {
  std::vector<std::vector<Candidate*>> finals;
  std::vector<Profiler::Entry> entries;
  std::vector<bool> recalled;
  for (const TimedLayer& layer : layers) {
    finals.push_back(finalists(layer));
    for (const Candidate* candidate : finals.back()) {
      entries.push_back({layer.problem, candidate});
      recalled.push_back(std::find(layer.recalled.begin(), layer.recalled.end(), candidate) != layer.recalled.end());
    }
  }
  if (entries.size() < 2) return;
  const std::vector<double> raced = profiler.compare(entries, allowance);
  if (raced.empty()) return;
  std::vector<double> factors(entries.size()), drifts, changes;
  for (size_t i = 0; i < entries.size(); ++i) {
    factors[i] = raced[i] / entries[i].candidate->seconds;
    (recalled[i] ? drifts : changes).push_back(factors[i]);
  }
  // How much slower the machine is now than when the recalled times were taken.
  const double drift = median_or(drifts, 1), usual = median_or(changes, 1);
  size_t next = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    std::map<const Routine*, double> own;
    for (const Candidate* candidate : finals[i]) {
      if (!recalled[next]) own.emplace(candidate->choice.routine, factors[next]);
      ++next;
    }
    double others = usual;
    for (const Candidate* candidate : finals[i]) {
      const auto at = own.find(candidate->choice.routine);
      if (at == own.end()) continue;
      others = at->second;  // of the fastest one
      break;
    }
    for (Candidate* candidate : layers[i].fresh) {
      const auto at = own.find(candidate->choice.routine);
      if (candidate->measured) candidate->seconds *= (at != own.end() ? at->second : others) / drift;
    }
  }
}

}  // namespace softneuro
