#include "tune/search/childnets.h"

#include <algorithm>
#include <map>

#include "layers/contract/childnet.h"

namespace softneuro {
namespace {

// Nested childnets would need their parts' costs first; there are none.
const ChildnetRoutine* childnet_routine(const Candidate& candidate) {
  return dynamic_cast<const ChildnetRoutine*>(candidate.choice.routine);
}

using Index = std::map<std::string, size_t>;  // of layers by the class of dense ones
Index index_of(const std::vector<LayerCandidates>& layers) {
  Index index;
  for (size_t i = 0; i < layers.size(); ++i) index.emplace(layers[i].cls.dense(), i);
  return index;
}

Candidate part_candidate(const ChildPart& part, const Problem& problem) {
  const Routine& routine = *part.choice.routine;
  Candidate candidate;
  candidate.choice = part.choice;
  candidate.descriptor = part.choice.descriptor();
  candidate.in = routine.input_schemas(problem);
  candidate.outs = routine.output_schemas(problem);
  candidate.packed_bytes = routine.packed_bytes(problem, part.choice.tuning);
  candidate.seconds = estimate_seconds(problem, 0);
  return candidate;
}

auto find_candidate(auto& candidates, const std::string& descriptor) {
  return std::find_if(candidates.begin(), candidates.end(),
                      [&](const Candidate& candidate) { return candidate.descriptor == descriptor; });
}

}  // namespace

bool is_childnet(const Candidate& candidate) { return childnet_routine(candidate) != nullptr; }

void add_childnet_parts(std::vector<LayerCandidates>& layers, int threads) {
  Index index = index_of(layers);
  const size_t whole = layers.size();
  for (size_t i = 0; i < whole; ++i) {
    for (size_t j = 0; j < layers[i].candidates.size(); ++j) {
      const Candidate& candidate = layers[i].candidates[j];
      const ChildnetRoutine* routine = childnet_routine(candidate);
      if (routine == nullptr) continue;
      for (const ChildPart& part : routine->childnet(layers[i].problem, candidate.choice.tuning)) {
        const Problem problem = part.problem(threads);
        const ProblemClass cls(problem, Patterns::ignored);
        const auto [at, fresh] = index.emplace(cls.dense(), layers.size());
        if (fresh) layers.push_back({problem, cls, {}, part.layer});
        auto& known = layers[at->second].candidates;
        Candidate own = part_candidate(part, problem);
        if (find_candidate(known, own.descriptor) == known.end()) known.push_back(std::move(own));
      }
    }
  }
}

void sum_childnets(std::vector<LayerCandidates>& layers, int threads) {
  const Index index = index_of(layers);
  for (LayerCandidates& layer : layers) {
    for (Candidate& candidate : layer.candidates) {
      const ChildnetRoutine* routine = childnet_routine(candidate);
      if (routine == nullptr) continue;
      double seconds = 0;
      bool measured = true, told = true;
      for (const ChildPart& part : routine->childnet(layer.problem, candidate.choice.tuning)) {
        const auto& known = layers[index.at(ProblemClass(part.problem(threads), Patterns::ignored).dense())].candidates;
        const auto own = find_candidate(known, part.choice.descriptor());
        seconds += own->seconds;
        measured = measured && own->measured;
        told = told && (own->measured || own->forecast);
      }
      if (!told) continue;  // the guess stands
      candidate.seconds = seconds;
      candidate.measured = measured;
      candidate.forecast = !measured;
    }
  }
}

}  // namespace softneuro
