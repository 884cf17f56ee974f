// Costs of childnets: a candidate that is a small net of other layers is not timed itself. Its parts are layers with
// candidates of their own, each measured once however many childnets share it, and the sum is its cost.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tune/search/candidates.h"

namespace softneuro {

// A layer and its candidates, as units to be measured.
struct LayerCandidates {
  Problem problem;
  ProblemClass cls;
  std::vector<Candidate> candidates;
  std::shared_ptr<const Layer> part;  // a childnet's layer, which `problem` refers to; null for those of a graph
};

bool is_childnet(const Candidate& candidate);

// Appends what the childnets among the candidates of `layers` consist of: layers that are not there yet, with the
// routines that are asked for.
void add_childnet_parts(std::vector<LayerCandidates>& layers, int threads);
// Sets the childnets' costs from those of their parts.
void sum_childnets(std::vector<LayerCandidates>& layers, int threads);

}  // namespace softneuro
