// What the times of measured layers tell about layers like them, which differ in sizes alone.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tune/search/candidates.h"

namespace softneuro {

class Forecast {
 public:
  // Takes in a layer's measured candidates.
  void learn(const ProblemClass& cls, std::span<const Candidate> candidates);

  // How many times as long as its layer's best a candidate takes: as it is likely, and at the very least, the further
  // the sizes of the layers that tell so are from this one's; 0 if a single layer tells.
  struct Ratio {
    double likely, least;
  };
  // Nothing if no layer is like this one.
  std::optional<Ratio> ratio(const ProblemClass& cls, const Candidate& candidate) const;

  // Takes in how many times as long as its layers one by one a fusion takes, and tells the very least that it is for
  // another one; 0 if too few are like that.
  void learn_fusion(const ProblemClass& cls, double ratio);
  double least_fusion_ratio(const ProblemClass& cls) const;

  // A candidate's seconds where nothing of its layer was measured: those of the layer most like it, by the rules' guess
  // for both, or these guesses at the pace of what was measured.
  double seconds(const ProblemClass& cls, const Candidate& candidate) const;

 private:
  // Bytes and floats have paces of their own, and so have routines that make use of zeros.
  using Storage = std::pair<DType, bool>;
  static Storage storage_of(const Candidate& candidate) {
    return {candidate.in.empty() ? DType::float32 : candidate.in.front().dtype,
            candidate.choice.routine->info().exploits_sparsity};
  }
  struct Known {
    std::vector<double> sizes;                  // logarithms, base 2
    double best, guess;                         // seconds, measured and by the rules
    std::map<std::string, double> ratios;       // by descriptor, logarithms
    std::map<const Routine*, double> routines;  // the least of each
  };
  // Logarithms of ratio and distance, nearest first, of those layers that tell about the candidate.
  std::vector<std::pair<double, double>> told(const ProblemClass& cls, const Candidate& candidate) const;
  const Known* nearest(const ProblemClass& cls) const;

  std::map<std::string, std::vector<Known>> kinds_;                                     // by all but sizes
  std::map<std::string, std::vector<std::pair<std::vector<double>, double>>> fusions_;  // sizes, logarithms of ratios
  std::map<Storage, std::vector<double>> paces_;  // least measured time over guess, by layer
};

}  // namespace softneuro
