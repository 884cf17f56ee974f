#include "net/net.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/team.h"
#include "layers/host/host.h"
#include "net/program.h"
#include "net/read_ahead.h"

namespace softneuro {
namespace {

// Memories kept for the next run; more exist while more threads than that run at once.
constexpr size_t max_idle_memories = 8;

// The memory of one run, with every step's arguments bound to it.
class RunMemory {
 public:
  explicit RunMemory(const Program& program) : team_(program.threads) {
    for (const size_t bytes : program.arenas) arenas_.emplace_back(bytes);
    size_t count = 0;
    for (const Step& step : program.steps) count += step.in.size() + step.outs.size();
    views_.reserve(count);
    args_.reserve(program.steps.size());
    for (const Step& step : program.steps) {
      const TensorView* const in = views_.data() + views_.size();
      for (int value : step.in) add_view(program, value);
      const TensorView* const outs = views_.data() + views_.size();
      for (int value : step.outs) add_view(program, value);
      auto* const arena = static_cast<std::byte*>(arenas_[static_cast<size_t>(Platform::cpu)].data());
      const Workspace workspace(arena + step.workspace, arena + program.tasks, program.task_stride);
      args_.push_back({in, outs, workspace, parallel_for_});
    }
  }
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  void attach(std::span<const void* const> inputs, std::span<void* const> outputs) {
    // A view's data pointer is not const because outputs share the type; inputs are read unless declared otherwise.
    for (const Patch& patch : input_patches_)
      *patch.data = static_cast<std::byte*>(const_cast<void*>(inputs[patch.index])) + patch.offset;
    for (const Patch& patch : output_patches_)
      *patch.data = static_cast<std::byte*>(outputs[patch.index]) + patch.offset;
  }
  // Calls body(index, run_step) for each step, with the host's threads together but for the host's own steps.
  template <typename Body>
  void run(const ParallelFor& host, ReadAhead& ahead, const std::vector<Step>& steps, const Body& body) {
    const auto run_steps = [&](size_t begin, size_t end) {
      for (size_t s = begin; s < end; ++s) body(s, [&] { steps[s].prepared->run(args_[s]); });
    };
    for (size_t begin = 0; begin < steps.size();) {
      size_t end = begin;
      while (end < steps.size() && !steps[end].prepared->on_caller()) ++end;
      if (end > begin) {
        team_.run(host, [&](const ParallelFor& parallel_for) {
          parallel_for_ = ahead.within(parallel_for);
          run_steps(begin, end);
        });
      } else {
        ++end;
        naming_layer(steps[begin], [&] { run_steps(begin, end); });
      }
      begin = end;
    }
  }

 private:
  struct Patch {
    void** data;
    size_t index, offset;
  };

  // What the host's own code throws says which layer it was.
  template <typename Fn>
  static void naming_layer(const Step& step, Fn&& fn) {
    try {
      fn();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      throw HostStepError(error.what(), "layer '" + step.name + "' (" + step.descriptor + ")");
    }
  }

  void add_view(const Program& program, int value) {
    const Value& v = program.values[static_cast<size_t>(value)];
    views_.push_back({nullptr, v.desc.shape, v.schema, v.strides});
    bind(program, v, &views_.back().data);
  }

  void bind(const Program& program, const Value& value, void** data) {
    const MemoryPlace& place = value.place;
    if (place.home == MemoryPlace::Home::arena) {
      *data = static_cast<std::byte*>(arenas_[static_cast<size_t>(value.schema.platform)].data()) + place.offset;
    } else if (place.home == MemoryPlace::Home::output) {
      output_patches_.push_back({data, static_cast<size_t>(place.root), place.offset});
    } else {
      const Value& root = program.values[static_cast<size_t>(place.root)];
      if (root.input >= 0)
        input_patches_.push_back({data, static_cast<size_t>(root.input), place.offset});
      else
        *data = static_cast<std::byte*>(const_cast<void*>(root.constant)) + place.offset;
    }
  }

  Team team_;
  std::vector<AlignedBuffer> arenas_;  // by platform
  ParallelFor parallel_for_;
  std::vector<TensorView> views_;  // of all steps
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

void Net::run(std::span<const void* const> inputs, std::span<void* const> outputs, const ParallelFor& parallel_for,
              std::span<const CacheLines* const> read_next) const {
  state_->check_arguments(inputs.size(), outputs.size());
  const State::Lease lease(*state_);
  RunMemory& memory = *lease;
  memory.attach(inputs, outputs);
  const std::vector<Step>& steps = state_->program.steps;
  if (steps.empty()) return;
  ReadAhead ahead(read_next, steps.size());
  memory.run(parallel_for, ahead, steps, [&](size_t s, const auto& run_step) {
    ahead.begin(s);
    run_step();
  });
  ahead.fetch();
}

std::vector<StepTime> Net::profile(std::span<const void* const> inputs, std::span<void* const> outputs,
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
    memory.run(parallel_for, nothing, steps, [&](size_t s, const auto& run_step) {
      const auto start = Clock::now();
      run_step();
      seconds[s].push_back(std::chrono::duration<double>(Clock::now() - start).count());
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
const std::vector<Schema>& Net::input_schemas() const { return state_->program.input_schemas; }
const std::vector<Schema>& Net::output_schemas() const { return state_->program.output_schemas; }
int Net::updated_input(size_t output) const { return state_->program.updated_inputs[output]; }
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
        dtype_bytes(value.schema.dtype, spanned_elements(value.desc.shape, value.strides, value.schema.layout));
    memory.push_back(
        {value.name, value.schema.str(), home, place.offset, bytes, place.first, place.last, place.content});
  }
  return memory;
}
int Net::threads() const { return state_->program.threads; }

}  // namespace softneuro
