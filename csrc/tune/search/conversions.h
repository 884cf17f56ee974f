// The conversions that a graph's blobs may need: what its candidates deliver against what they want.
#pragma once

#include <utility>
#include <vector>

#include "graph/grids.h"
#include "tune/search/candidates.h"

namespace softneuro {

// A layer, or what stands for several, and what may compute it.
struct Offer {
  const Layer* layer;
  const std::vector<Candidate>* candidates;
};

// By blob: single steps from one schema to another.
using Conversions = std::vector<std::vector<std::pair<Schema, Schema>>>;

// The steps from every schema that a blob's producer, a constant or the caller may deliver to every other that a reader
// or the caller may want. `grids`: the plan's, or null.
Conversions possible_conversions(const Graph& graph, const std::vector<Offer>& offers, const Grids* grids);

}  // namespace softneuro
