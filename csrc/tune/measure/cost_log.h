// What tuning tells while it goes on.
#pragma once

#include <span>
#include <string>

#include "tune/measure/timekeeper.h"
#include "tune/search/candidates.h"

namespace softneuro {

// One line for a layer whose candidates are measured or recalled, and one of less weight for each of them.
void log_costs(const std::string& signature, std::span<const Candidate> candidates);

// Where the time of a tuning went, at log_progress().
void log_stages(std::span<const StageTime> stages);

}  // namespace softneuro
