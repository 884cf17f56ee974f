// Memory that an output is declared to share with an input, and arenas of their own. Exit status 1 if anything differs.
#include "net/memory_plan.h"

#include <cstdio>
#include <vector>

#include "base/error.h"
#include "tests/expect.h"

namespace softneuro {
namespace {

void expect(bool right, const char* what) {
  if (!right) std::printf("%s\n", what), ++test::failures();
}

bool refuses(const std::vector<PlanValue>& values, const std::vector<MemoryStep>& steps) {
  try {
    plan_memory(values, steps);
  } catch (const Error&) {
    return true;
  }
  return false;
}

// A cache (value 0, the caller's) that a step brings up to date with what another made of value 1.
void check_updates() {
  const std::vector<PlanValue> values{{.bytes = 256, .read_only = true},
                                      {.bytes = 64, .read_only = true},
                                      {.bytes = 64},
                                      {.bytes = 256},
                                      {.bytes = 64}};
  const MemoryStep make{.reads = {1}, .writes = {2}, .offsets = {}};
  const MemoryStep update{.reads = {0, 2}, .writes = {3}, .updates = {0}, .offsets = {}};
  const MemoryStep read_new{.reads = {3}, .writes = {4}, .offsets = {}};
  const MemoryStep read_old{.reads = {0}, .writes = {4}, .offsets = {}};
  const MemoryPlan plan = plan_memory(values, std::vector{make, update, read_new});
  expect(plan.values[3].home == MemoryPlace::Home::own && plan.values[3].root == 0 && plan.values[3].offset == 0,
         "an update is not where it is declared to be");
  expect(!refuses(values, {read_old, make, update}), "what is read before its update is refused");
  expect(refuses(values, {make, update, read_old}), "what is read after its update is not refused");
  // A view of the old content counts.
  const MemoryStep view{.kind = MemoryStep::Kind::view, .reads = {0}, .writes = {4}, .offsets = {128}};
  std::vector<PlanValue> more = values;
  more.push_back({.bytes = 64});
  const MemoryStep read_view{.reads = {4}, .writes = {5}, .offsets = {}};
  expect(refuses(more, {make, view, update, read_view}), "a view that is read after the update is not refused");
  expect(!refuses(more, {make, view, read_view, update}), "a view that is read before the update is refused");
}

// Values of two platforms share nothing and are counted apart.
void check_arenas() {
  const std::vector<PlanValue> values{{.bytes = 64, .read_only = true},
                                      {.bytes = 4096},
                                      {.bytes = 1024, .arena = 1},
                                      {.bytes = 4096},
                                      {.bytes = 64, .output = 0}};
  const std::vector<MemoryStep> steps{{.reads = {0}, .writes = {1}, .offsets = {}},
                                      {.reads = {1}, .writes = {2}, .inplace = 0, .offsets = {}},
                                      {.reads = {2}, .writes = {3}, .offsets = {}},
                                      {.reads = {3}, .writes = {4}, .offsets = {}}};
  const MemoryPlan plan = plan_memory(values, steps, 2);
  expect(plan.arena_bytes == std::vector<size_t>{4096, 1024}, "arenas are not counted apart");
}

}  // namespace
}  // namespace softneuro

SN_TEST(memory_plan_test) {
  softneuro::check_updates();
  softneuro::check_arenas();
}
