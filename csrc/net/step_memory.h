// What a planned program's steps have in the arena. Internal to net/.
#pragma once

#include <vector>

#include "net/program.h"

namespace softneuro {

std::vector<StepMemory> step_memory(const Program& program);

}  // namespace softneuro
