#include "tune/plan/plan_file.h"

#include "tune/records/text_file.h"

namespace softneuro {

PlanFile load_plans(const std::string& path) { return PlanFile::parse(read_text_file(path, "the plan"), path); }

void save_plans(const PlanFile& plans, const std::string& path) {
  change_text_file(path, "the plan", [&](const std::optional<std::string>& old) {
    PlanFile merged = old ? PlanFile::parse(*old, path) : PlanFile();
    for (const Plan& plan : plans.plans()) merged.set(plan);
    return merged.format();
  });
}

}  // namespace softneuro
