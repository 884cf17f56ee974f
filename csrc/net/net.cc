#include "net/net.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/team.h"
#include "layers/host/host.h"
#include "net/program.h"
#include "net/step_memory.h"

namespace softneuro {
namespace {

// Memories kept for the next run; more exist while more threads than that run at once.
constexpr size_t max_idle_memories = 8;

// What one run at a time needs: every step's arguments, bound to the memory that it is given.
class RunMemory {
 public:
  explicit RunMemory(const Program& program) : team_(program.threads), program_(program) {
    size_t count = 0;
    for (const Step& step : program.steps) count += step.in.size() + step.outs.size();
    views_.reserve(count);
    args_.reserve(program.steps.size());
    for (const Step& step : program.steps) {
      const TensorView* const in = views_.data() + views_.size();
      for (int value : step.in) add_view(program, value);
      const TensorView* const outs = views_.data() + views_.size();
      for (int value : step.outs) add_view(program, value);
      args_.push_back({in, outs, Workspace(nullptr, nullptr, 0), parallel_for_});
      args_.back().rejecting = &rejecting_;
      args_.back().step = static_cast<int>(args_.size()) - 1;
    }
    bound_.resize(program.arenas.size(), nullptr);
  }
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  // As much as what it keeps itself, whatever the run's memory.
  size_t own_bytes() const {
    return views_.size() * sizeof(TensorView) + args_.size() * (sizeof(RunArgs) + sizeof(Step)) +
           arena_patches_.size() * sizeof(Patch);
  }

  // Memory of the arenas, by platform.
  void bind_arenas(const std::vector<AlignedBuffer>& arenas) {
    const auto same = [](const AlignedBuffer& arena, const std::byte* at) { return arena.data() == at; };
    if (std::equal(arenas.begin(), arenas.end(), bound_.begin(), same)) return;
    for (size_t a = 0; a < arenas.size(); ++a) bound_[a] = static_cast<std::byte*>(arenas[a].data());
    for (const Patch& patch : arena_patches_) *patch.data = bound_[patch.index] + patch.offset;
    std::byte* const arena = bound_[static_cast<size_t>(Platform::cpu)];
    for (size_t s = 0; s < args_.size(); ++s) {
      args_[s].workspace = Workspace(arena + program_.steps[s].workspace, arena + program_.tasks, program_.task_stride);
    }
  }
  void attach(std::span<const void* const> inputs, std::span<void* const> outputs) {
    // A view's data pointer is not const because outputs share the type; inputs are read unless declared otherwise.
    for (const Patch& patch : input_patches_)
      *patch.data = static_cast<std::byte*>(const_cast<void*>(inputs[patch.index])) + patch.offset;
    for (const Patch& patch : output_patches_)
      *patch.data = static_cast<std::byte*>(outputs[patch.index]) + patch.offset;
  }
  // Throws if a step has rejected its inputs since the last time.
  void expect_no_rejection() {
    const int step = rejecting_.exchange(-1, std::memory_order_relaxed);
    if (step < 0) return;
    const Step& by = program_.steps[static_cast<size_t>(step)];
    throw RejectedInput("an input has values beyond what the layer takes",
                        "layer '" + by.name + "' (" + by.descriptor + ")", "an index may be beyond an end");
  }
  // Calls body(index, run_step) for each step, with the host's threads together but for the host's own steps.
  template <typename Body>
  void run(const ParallelFor& host, const std::vector<Step>& steps, const Body& body) {
    const auto run_steps = [&](size_t begin, size_t end) {
      for (size_t s = begin; s < end; ++s) body(s, [&] { steps[s].prepared->run(args_[s]); });
    };
    for (size_t begin = 0; begin < steps.size();) {
      size_t end = begin;
      while (end < steps.size() && !steps[end].prepared->on_caller()) ++end;
      if (end > begin) {
        team_.run(host, [&](const ParallelFor& parallel_for) {
          parallel_for_ = parallel_for;
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
      arena_patches_.push_back({data, static_cast<size_t>(value.schema.platform), place.offset});
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
  const Program& program_;
  std::atomic<int> rejecting_{-1};
  std::vector<std::byte*> bound_;  // by platform: the arena that it was bound to last
  ParallelFor parallel_for_;
  std::vector<TensorView> views_;  // of all steps
  std::vector<RunArgs> args_;
  std::vector<Patch> arena_patches_, input_patches_, output_patches_;
};

size_t border_bytes(const Program& program) {
  size_t total = 0;
  for (size_t k = 0; k < program.input_descs.size(); ++k) {
    total += bytes(program.input_descs[k], program.input_schemas[k]);
  }
  for (size_t k = 0; k < program.output_descs.size(); ++k) {
    if (program.updated_inputs[k] < 0) total += bytes(program.output_descs[k], program.output_schemas[k]);
  }
  return total;
}

void count_own(Program& program, const RunMemory& memory) {
  program.stats.own_bytes = program.values.size() * sizeof(Value) + memory.own_bytes();
  program.stats.border_bytes = border_bytes(program);
}

}  // namespace

struct Net::State {
  Program program;
  std::shared_ptr<ArenaPool> arenas;
  mutable ForkMutex mutex;
  mutable std::vector<std::unique_ptr<RunMemory>> idle;

  // Memory for as long as the lease lives.
  class Lease {
   public:
    explicit Lease(const State& state) : state_(state) {
      {
        const std::unique_lock lock(state.mutex);
        if (!state.idle.empty()) {
          memory_ = std::move(state.idle.back());
          state.idle.pop_back();
        }
      }
      if (memory_ == nullptr) memory_ = std::make_unique<RunMemory>(state.program);
      arenas_.reserve(state.program.arenas.size());
      for (const size_t bytes : state.program.arenas) arenas_.push_back(state.arenas->take(bytes));
      memory_->bind_arenas(arenas_);
    }
    ~Lease() {
      for (AlignedBuffer& arena : arenas_) state_.arenas->give_back(std::move(arena));
      const std::unique_lock lock(state_.mutex);
      if (state_.idle.size() < max_idle_memories) state_.idle.push_back(std::move(memory_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    RunMemory& operator*() const { return *memory_; }

   private:
    const State& state_;
    std::unique_ptr<RunMemory> memory_;
    std::vector<AlignedBuffer> arenas_;
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
                                        PackedCache& cache, std::shared_ptr<ArenaPool> arenas) {
  std::shared_ptr<Net> net(new Net);
  State& state = *net->state_;
  state.arenas = arenas != nullptr ? std::move(arenas) : std::make_shared<ArenaPool>();
  state.program = build_program(graph, assignment, threads, cache);
  state.idle.reserve(max_idle_memories);  // giving one back must not throw
  state.idle.push_back(std::make_unique<RunMemory>(state.program));
  // Whether memory is short is said now, not at the first run.
  for (const size_t bytes : state.program.arenas) state.arenas->give_back(state.arenas->take(bytes));
  count_own(state.program, *state.idle.front());
  return net;
}

MemoryForecast Net::foresee(const Graph& graph, const Assignment& assignment, int threads, PackedCache& cache) {
  Program program = build_program(graph, assignment, threads, cache);
  count_own(program, RunMemory(program));
  return {program.stats, step_memory(program)};
}

void Net::run(std::span<const void* const> inputs, std::span<void* const> outputs,
              const ParallelFor& parallel_for) const {
  state_->check_arguments(inputs.size(), outputs.size());
  const State::Lease lease(*state_);
  RunMemory& memory = *lease;
  memory.attach(inputs, outputs);
  const std::vector<Step>& steps = state_->program.steps;
  memory.run(parallel_for, steps, [](size_t, const auto& run_step) { run_step(); });
  memory.expect_no_rejection();
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
  for (int round = 0; round < rounds; ++round)
    memory.run(parallel_for, steps, [&](size_t s, const auto& run_step) {
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
const std::vector<std::shared_ptr<const Packed>>& Net::packings() const { return state_->program.packings; }
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
