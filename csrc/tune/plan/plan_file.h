// Reading and replacing plan files.
#pragma once

#include <string>

#include "tune/plan/plan.h"

namespace softneuro {

// Throws Error if the file cannot be read.
PlanFile load_plans(const std::string& path);

// Replaces the file at once, never leaving half of it. Sections that the file has and `plans` lacks are kept; throws
// Error rather than overwrite a file that is no plan. Two processes saving at once lose none of each other's sections.
void save_plans(const PlanFile& plans, const std::string& path);

}  // namespace softneuro
