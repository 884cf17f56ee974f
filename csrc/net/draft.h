// A program whose memory is not planned yet. Internal to net/.
#pragma once

#include <vector>

#include "net/memory_plan.h"
#include "net/program.h"

namespace softneuro {

struct Draft {
  Program program;
  std::vector<PlanValue> plan_values;  // by program.values
  std::vector<MemoryStep> plan_steps;  // by program.steps
  std::vector<int> outputs;            // values, by graph output
  std::vector<bool> updating_outputs;  // by graph output: whether it is declared to be an input's memory
};

// Gives every value its place, drops the steps that need none of their own, adds copies for concatenations whose parts
// live elsewhere and for outputs that are not the caller's memory already, and counts.
void place(Draft& draft);

}  // namespace softneuro
