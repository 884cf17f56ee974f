// What may run each layer: every accepting routine and tuning that the user's limits allow.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "layers/contract/registry.h"

namespace softneuro {

struct Candidate {
  RoutineChoice choice;
  std::string descriptor;
  std::vector<Schema> in, outs;  // by layer input and output
  size_t packed_bytes = 0;
  double seconds = 0;
  bool measured = false;    // else seconds is estimate_seconds(), or
  bool forecast = false;    // what is to be expected by the times of layers like this one
  double error = 0;         // Routine::expected_error()
  bool only_asked = false;  // other limits have left it out, the option `fixed` asks for it
};

struct SearchLimits {
  std::vector<std::string> schemas;  // dtypes or full schemas; row-major float32 is always there to fall back on
  double max_error = 1e-4;
  bool strict_nonfinite = false;
  double sparse_floor = 0;      // routines that leave zeros out are no candidates where fewer weights are zero
  bool rounded_anyway = false;  // the grids are the plan's: what is inexact errs as roundings do
};

// Never empty for a valid problem: if the limits leave nothing, the row-major routines stand. All problems of a class
// have the same, but for packed_bytes, which are those of `problem`.
std::vector<Candidate> enumerate_candidates(const ProblemClass& cls, const Problem& problem,
                                            const SearchLimits& limits);
inline std::vector<Candidate> enumerate_candidates(const Problem& problem, const SearchLimits& limits) {
  return enumerate_candidates(ProblemClass(problem), problem, limits);
}

// A guess for plans made without measuring: arithmetic and traffic at fixed rates, later entries of routines.inc
// dearer, so that list order is the prior. Comparable between candidates of one layer only.
double estimate_seconds(const Problem& problem, size_t rank);
// The same of a routine that leaves zero weights out, by what it packs of them.
double estimate_sparse_seconds(const Problem& problem, size_t packed_bytes);
double estimate_adapt_seconds(const TensorDesc& desc, const Schema& from, const Schema& to);

}  // namespace softneuro
