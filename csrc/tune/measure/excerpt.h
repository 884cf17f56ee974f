// Parts of long layers, whose times tell about the whole.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tune/search/candidates.h"

namespace softneuro {

// The same layer on a part of its images or rows, that tells which routines are worth timing for all of it; nothing if
// it takes little time anyway, has few of them, or is not defined on a part.
std::optional<Problem> excerpt(const Problem& problem);

// The same of a layer that reads and writes far more than caches hold: a part that still does, whose time is the
// whole's but for the scale.
std::optional<Problem> large_part(const Problem& problem);
// And of a blob that is converted.
std::optional<TensorDesc> large_part(const TensorDesc& desc);

// A layer's candidates on a part of it, each with its own params or with the nearest that the part has.
class PartCandidates {
 public:
  PartCandidates(const Problem& whole, const Problem& part, std::span<Candidate* const> candidates);

  double scale() const { return scale_; }  // how many times as large the whole is
  std::vector<Candidate>& all() { return all_; }
  // The whole's candidate, by index in all().
  Candidate& whole(size_t index) const { return *whole_[index]; }

 private:
  double scale_;
  std::vector<Candidate> all_;  // less those that the part's size rules out
  std::vector<Candidate*> whole_;
};

}  // namespace softneuro
