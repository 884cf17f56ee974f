// Which ops of the host become steps of the regions that they would cut apart.
#pragma once

#include <vector>

#include "providers/ort/partition/partition.h"

namespace softneuro::ort {

// THE rule. Candidates that feed each other stand or fall together. They join if a part before them and a part after
// them each have at least min_region_size ops, and no fewer than there are steps: a step costs what it costs with the
// host, and what is won is the border on either side. Asks check_step() of those that would join.
std::vector<bool> joining_steps(const OpGraph& graph, const std::vector<Partition::Part>& parts,
                                std::vector<bool> candidates, int min_region_size);

}  // namespace softneuro::ort
