#include <algorithm>
#include <cstring>
#include <utility>

#include "net/draft.h"

namespace softneuro {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

// Copies one dense blob onto another of the same schema.
class CopyPrepared : public Prepared {
 public:
  CopyPrepared(size_t bytes, int threads) : bytes_(bytes), tasks_(bytes < 65536 ? 1 : threads) {}

  void run(const RunArgs& args) const override {
    auto* dst = static_cast<std::byte*>(args.out.data);
    const auto* src = static_cast<const std::byte*>(args.in[0].data);
    args.parallel_for(tasks_, [&](int64_t task) {
      const Range range = split_range(static_cast<int64_t>(bytes_), tasks_, task);
      std::memcpy(dst + range.begin, src + range.begin, static_cast<size_t>(range.end - range.begin));
    });
  }

 private:
  size_t bytes_;
  int tasks_;
};

// Adds what brings a value to its target, unless it is there already. `like` names the step.
void add_copy(const Draft& draft, std::vector<Value>& values, std::vector<Step>& steps, const Step& like, int source,
              const MemoryPlace& target) {
  const MemoryPlace& from = values[at(source)].place;
  const size_t bytes = draft.plan_values[at(source)].bytes;
  const bool there = from.home == target.home && from.root == target.root && from.offset == target.offset;
  if (there || bytes == 0) return;
  Value part = values[at(source)];
  part.place = target;
  part.part = true;
  part.input = -1;
  part.constant = nullptr;
  Step step;
  step.layer = like.layer;
  step.name = like.name;
  step.descriptor = like.descriptor;
  step.prepared = std::make_unique<CopyPrepared>(bytes, draft.program.threads);
  step.in = {source};
  step.outs = {static_cast<int>(values.size())};
  values.push_back(std::move(part));
  steps.push_back(std::move(step));
}

}  // namespace

void place(Draft& draft) {
  Program& program = draft.program;
  const MemoryPlan plan = plan_memory(draft.plan_values, draft.plan_steps, platform_count);
  for (size_t v = 0; v < program.values.size(); ++v) program.values[v].place = plan.values[v];
  for (size_t s = 0; s < program.steps.size(); ++s) program.steps[s].workspace = plan.workspaces[s];
  WorkspaceSize size;
  for (const Step& step : program.steps) {
    program.planned.push_back({.layer = step.layer});
    if (step.prepared == nullptr) continue;
    const WorkspaceSize own = step.prepared->workspace();
    program.planned.back().workspace = own.shared_lines();
    program.planned.back().task = own.stride();
    size.task = std::max(size.task, own.task);
    size.tasks = std::max(size.tasks, own.tasks);
  }
  // What tasks have for themselves is behind the CPU's blobs.
  program.arenas = plan.arena_bytes;
  size_t& own = program.arenas[static_cast<size_t>(Platform::cpu)];
  program.tasks = own;
  program.task_stride = size.stride();
  own += size.of_tasks();
  for (const size_t bytes : program.arenas) program.stats.arena_bytes += bytes;

  std::vector<Step> steps;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const MemoryStep& planned = draft.plan_steps[s];
    Step& step = program.steps[s];
    if (planned.kind != MemoryStep::Kind::view) {
      for (const int write : planned.writes) program.stats.blob_bytes += draft.plan_values[at(write)].bytes;
    }
    if (planned.kind == MemoryStep::Kind::gather) {
      for (size_t k = 0; k < planned.reads.size(); ++k) {
        MemoryPlace target = program.values[at(planned.writes[0])].place;
        target.offset += planned.offsets[k];
        add_copy(draft, program.values, steps, step, planned.reads[k], target);
      }
    } else if (step.prepared != nullptr) {
      steps.push_back(std::move(step));
    }
  }
  for (size_t k = 0; k < draft.outputs.size(); ++k) {
    const MemoryPlace& own_place = program.values[at(draft.outputs[k])].place;
    program.updated_inputs.push_back(-1);
    if (draft.updating_outputs[k] && own_place.home == MemoryPlace::Home::own) {
      program.updated_inputs.back() = program.values[at(own_place.root)].input;
      continue;
    }
    MemoryPlace target;
    target.home = MemoryPlace::Home::output;
    target.root = static_cast<int>(k);
    Step step;
    step.name = program.values[at(draft.outputs[k])].name;
    step.descriptor = "copy to output " + std::to_string(k);
    add_copy(draft, program.values, steps, step, draft.outputs[k], target);
  }
  program.steps = std::move(steps);
  program.stats.steps = static_cast<int>(program.steps.size());
}

}  // namespace softneuro
