// Running a graph's nets on inputs of no meaning, to time them.
#pragma once

#include <vector>

#include "net/net.h"

namespace softneuro {

class Trial {
 public:
  explicit Trial(const Graph& graph);
  double run(const Net& net, const ParallelFor& parallel_for);  // seconds
  // Net::profile after a run that warms up.
  std::vector<StepTime> profile(const Net& net, const ParallelFor& parallel_for, int rounds);

 private:
  std::vector<std::vector<float>> inputs_, outputs_;
  std::vector<const float*> in_;
  std::vector<float*> out_;
};

}  // namespace softneuro
