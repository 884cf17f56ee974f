#include "tune/measure/cost_log.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/log.h"

namespace softneuro {

static std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f us", 1e6 * seconds);
  return text;
}

void log_costs(const std::string& signature, std::span<const Candidate> candidates) {
  std::vector<const Candidate*> known;
  for (const Candidate& candidate : candidates) {
    if (candidate.measured) known.push_back(&candidate);
  }
  if (known.empty()) return;
  std::stable_sort(known.begin(), known.end(), [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
  log_progress("tune: " + signature + ": " + microseconds(known.front()->seconds) + ", the best of " +
               std::to_string(known.size()) + " candidates");
  for (const Candidate* candidate : known) {
    log_debug("tune: " + microseconds(candidate->seconds) + " " + candidate->descriptor);
  }
}

void log_stages(std::span<const StageTime> stages) {
  std::string text;
  for (const StageTime& stage : stages) {
    char part[64];
    std::snprintf(part, sizeof(part), " %.3f s (%d)", stage.seconds, stage.times);
    text += (text.empty() ? "" : ", ") + stage.name + part;
  }
  log_progress("tune: stages: " + text);
}

}  // namespace softneuro
