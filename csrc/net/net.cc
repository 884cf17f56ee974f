#include "net/net.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/team.h"
#include "net/program.h"
#include "net/read_ahead.h"

namespace softneuro {
namespace {

// Memories kept for the next run; more exist while more threads than that run at once.
constexpr size_t max_idle_memories = 8;

// The memory of one run, with every step's arguments bound to it.
class RunMemory {
 public:
  explicit RunMemory(const Program& program) : team_(program.threads), arena_(program.stats.arena_bytes) {
    size_t count = 0;
    for (const Step& step : program.steps) count += step.in.size();
    inputs_.reserve(count);
    args_.reserve(program.steps.size());
    for (const Step& step : program.steps) {
      const TensorView* in = inputs_.data() + inputs_.size();
      for (int value : step.in) {
        inputs_.push_back(view(program, value));
        bind(program, value, &inputs_.back().data);
      }
      auto* const arena = static_cast<std::byte*>(arena_.data());
      const Workspace workspace(arena + step.workspace, arena + program.tasks, program.task_stride);
      args_.push_back({in, view(program, step.out), workspace, parallel_for_});
      bind(program, step.out, &args_.back().out.data);
    }
  }
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  void attach(std::span<const float* const> inputs, std::span<float* const> outputs) {
    // Inputs are only ever read; a view's data pointer is not const because outputs share the type.
    for (const Patch& patch : input_patches_)
      *patch.data = reinterpret_cast<std::byte*>(const_cast<float*>(inputs[patch.index])) + patch.offset;
    for (const Patch& patch : output_patches_)
      *patch.data = reinterpret_cast<std::byte*>(outputs[patch.index]) + patch.offset;
  }
  // Calls body(run_step) with the host's threads together.
  template <typename Body>
  void run(const ParallelFor& host, ReadAhead& ahead, const Body& body) {
    team_.run(host, [&](const ParallelFor& parallel_for) {
      parallel_for_ = ahead.within(parallel_for);
      body([&](const Step& step, size_t index) { step.prepared->run(args_[index]); });
    });
  }

 private:
  struct Patch {
    void** data;
    size_t index, offset;
  };

  static TensorView view(const Program& program, int value) {
    const Value& v = program.values[static_cast<size_t>(value)];
    return dense_view(nullptr, v.shape, v.schema);
  }

  void bind(const Program& program, int value, void** data) {
    const MemoryPlace& place = program.values[static_cast<size_t>(value)].place;
    if (place.home == MemoryPlace::Home::arena) {
      *data = static_cast<std::byte*>(arena_.data()) + place.offset;
    } else if (place.home == MemoryPlace::Home::output) {
      output_patches_.push_back({data, static_cast<size_t>(place.root), place.offset});
    } else {
      const Value& root = program.values[static_cast<size_t>(place.root)];
      if (root.input >= 0)
        input_patches_.push_back({data, static_cast<size_t>(root.input), place.offset});
      else
        *data = reinterpret_cast<std::byte*>(const_cast<float*>(root.constant)) + place.offset;
    }
  }

  Team team_;
  AlignedBuffer arena_;
  ParallelFor parallel_for_;
  std::vector<TensorView> inputs_;  // of all steps
  std::vector<RunArgs> args_;
  std::vector<Patch> input_patches_, output_patches_;
};

}  // namespace

struct Net::State {
  Program program;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<RunMemory>> idle;

  // Memory for as long as the lease lives.
  class Lease {
   public:
    explicit Lease(const State& state) : state_(state) {
      {
        const std::lock_guard lock(state.mutex);
        if (!state.idle.empty()) {
          memory_ = std::move(state.idle.back());
          state.idle.pop_back();
        }
      }
      if (memory_ == nullptr) memory_ = std::make_unique<RunMemory>(state.program);
    }
    ~Lease() {
      const std::lock_guard lock(state_.mutex);
      if (state_.idle.size() < max_idle_memories) state_.idle.push_back(std::move(memory_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    RunMemory& operator*() const { return *memory_; }

   private:
    const State& state_;
    std::unique_ptr<RunMemory> memory_;
  };

  void check_arguments(size_t inputs, size_t outputs) const {
    if (inputs == program.input_descs.size() && outputs == program.output_descs.size()) return;
    throw Error("the net has " + std::to_string(program.input_descs.size()) + " inputs and " +
                std::to_string(program.output_descs.size()) + " outputs, but was given " + std::to_string(inputs) +
                " and " + std::to_string(outputs));
  }
};

Net::Net() : state_(std::make_unique<State>()) {}
Net::~Net() = default;

std::shared_ptr<const Net> Net::prepare(const Graph& graph, const Assignment& assignment, int threads,
                                        PackedCache& cache) {
  std::shared_ptr<Net> net(new Net);
  State& state = *net->state_;
  state.program = build_program(graph, assignment, threads, cache);
  state.idle.reserve(max_idle_memories);  // giving one back must not throw
  state.idle.push_back(std::make_unique<RunMemory>(state.program));
  return net;
}

void Net::run(std::span<const float* const> inputs, std::span<float* const> outputs, const ParallelFor& parallel_for,
              std::span<const CacheLines* const> read_next) const {
  state_->check_arguments(inputs.size(), outputs.size());
  const State::Lease lease(*state_);
  RunMemory& memory = *lease;
  memory.attach(inputs, outputs);
  const std::vector<Step>& steps = state_->program.steps;
  if (steps.empty()) return;
  ReadAhead ahead(read_next, steps.size());
  memory.run(parallel_for, ahead, [&](const auto& run_step) {
    for (size_t s = 0; s < steps.size(); ++s) {
      ahead.begin(s);
      run_step(steps[s], s);
    }
    ahead.fetch();
  });
}

std::vector<StepTime> Net::profile(std::span<const float* const> inputs, std::span<float* const> outputs,
                                   const ParallelFor& parallel_for, int rounds) const {
  using Clock = std::chrono::steady_clock;
  if (rounds < 1) throw Error("profiling takes at least one round, not " + std::to_string(rounds));
  state_->check_arguments(inputs.size(), outputs.size());
  const State::Lease lease(*state_);
  RunMemory& memory = *lease;
  memory.attach(inputs, outputs);
  const std::vector<Step>& steps = state_->program.steps;
  std::vector<std::vector<double>> seconds(steps.size());
  ReadAhead nothing({}, 0);
  for (int round = 0; round < rounds; ++round)
    memory.run(parallel_for, nothing, [&](const auto& run_step) {
      for (size_t s = 0; s < steps.size(); ++s) {
        const auto start = Clock::now();
        run_step(steps[s], s);
        seconds[s].push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
    });
  std::vector<StepTime> times;
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto middle = seconds[s].begin() + rounds / 2;
    std::nth_element(seconds[s].begin(), middle, seconds[s].end());
    times.push_back({steps[s].layer, steps[s].name, steps[s].descriptor, *middle});
  }
  return times;
}

const std::vector<TensorDesc>& Net::input_descs() const { return state_->program.input_descs; }
const std::vector<TensorDesc>& Net::output_descs() const { return state_->program.output_descs; }
const NetStats& Net::stats() const { return state_->program.stats; }
std::vector<BlobMemory> Net::memory() const {
  std::vector<BlobMemory> memory;
  for (const Value& value : state_->program.values) {
    if (value.part) continue;
    const MemoryPlace& place = value.place;
    std::string home = "arena";
    if (place.home == MemoryPlace::Home::output) home = "output " + std::to_string(place.root);
    if (place.home == MemoryPlace::Home::own) {
      const int input = state_->program.values[static_cast<size_t>(place.root)].input;
      home = input >= 0 ? "input " + std::to_string(input) : "constant " + std::to_string(place.root);
    }
    const size_t bytes =
        static_cast<size_t>(physical_elements(value.shape, value.schema.layout)) * dtype_size(value.schema.dtype);
    memory.push_back(
        {value.name, value.schema.str(), home, place.offset, bytes, place.first, place.last, place.content});
  }
  return memory;
}
int Net::threads() const { return state_->program.threads; }

}  // namespace softneuro
