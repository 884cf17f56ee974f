// Running a graph's nets on inputs of no meaning, to time them or to compare what they give.
#pragma once

#include <vector>

#include "net/net.h"

namespace softneuro {

// Row-major memory by input or output.
using Tensors = std::vector<std::vector<float>>;

class Trial {
 public:
  explicit Trial(const Graph& graph);  // every input 0.5
  Trial(const Graph& graph, Tensors inputs);
  double run(const Net& net, const ParallelFor& parallel_for);  // seconds
  // Net::profile after a run that warms up.
  std::vector<StepTime> profile(const Net& net, const ParallelFor& parallel_for, int rounds);
  const Tensors& outputs() const { return outputs_; }  // of the last run

 private:
  Tensors inputs_, outputs_;
  std::vector<const float*> in_;
  std::vector<float*> out_;
};

}  // namespace softneuro
