// The contract of a routine: one implementation of a layer type for one schema. It says *can*, never *should*.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arch.h"
#include "base/lines.h"
#include "base/refusal.h"
#include "base/tensor.h"
#include "base/threads.h"
#include "layers/contract/layer.h"
#include "layers/contract/packed.h"

namespace softneuro {

// Values of a routine's params, in the order of param_names(); routines name them by SN_PARAMS
// (layers/contract/params.h).
using Tuning = std::vector<int>;

// Bytes of a task's scratch, or between a childnet's parts, beyond which routines decline.
constexpr size_t most_scratch = size_t{256} << 20;

// Bytes that a run needs besides blobs: what all tasks share, and what each has for itself.
struct WorkspaceSize {
  size_t shared = 0, task = 0;
  int64_t tasks = 0;

  // From task to task: with a page between them, as prefetches run past the end of what another core writes.
  size_t stride() const { return task == 0 ? 0 : round_to_line(task) + 4096; }
  size_t of_tasks() const { return stride() * static_cast<size_t>(tasks); }
  size_t shared_lines() const { return round_to_line(shared); }
  size_t bytes() const { return shared_lines() + of_tasks(); }
};

// 64-byte aligned, contents undefined. A task is likely to have the same memory in all steps of a net, so that it is in
// the caches of the core that wrote there last.
class Workspace {
 public:
  // Has as many bytes as are asked for.
  Workspace(const WorkspaceSize& size, void* memory)
      : Workspace(static_cast<std::byte*>(memory), static_cast<std::byte*>(memory) + size.shared_lines(),
                  size.stride()) {}
  Workspace(std::byte* shared, std::byte* tasks, size_t stride) : shared_(shared), tasks_(tasks), stride_(stride) {}

  std::byte* shared() const { return shared_; }
  std::byte* task(int64_t task) const { return tasks_ + static_cast<size_t>(task) * stride_; }
  // The same with less of what tasks share.
  Workspace without(size_t bytes) const { return {shared_ + bytes, tasks_, stride_}; }

 private:
  std::byte *shared_, *tasks_;
  size_t stride_;
};

class Queue;

struct RunArgs {
  RunArgs(const TensorView* inputs, const TensorView* outputs, const Workspace& scratch, const ParallelFor& threads)
      : in(inputs), outs(outputs), out(*outputs), workspace(scratch), parallel_for(threads) {}

  const TensorView* in;    // as many as the problem has inputs, residual last
  const TensorView* outs;  // as many as it has outputs
  const TensorView& out;   // the first of them
  Workspace workspace;     // of Prepared::workspace()
  const ParallelFor& parallel_for;
  // It gets the number of a step that has rejected its inputs; it is null where nobody asks.
  std::atomic<int>* rejecting = nullptr;
  int step = 0;
  // Where a platform takes its work; null on the CPU, which has none. Steps of one queue run in order, and memory that
  // other platforms read is ready once the queue is.
  Queue* queue = nullptr;

  // Says that inputs have values of which the layer makes nothing, as indices beyond an end: the run's results are
  // none. The routine writes its output all the same.
  void reject() const {
    if (rejecting != nullptr) rejecting->store(step, std::memory_order_relaxed);
  }
};

// A routine made ready for one problem. Immutable; run() is reentrant, allocates nothing, throws nothing, writes every
// element of out (padding lanes as zero) and reads nothing beyond a blob's end.
class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual WorkspaceSize workspace() const { return {}; }
  virtual void run(const RunArgs& args) const = 0;
  // Whether run() is to be called on the thread that runs the net, while no other works for it: the host's own code.
  // Only this may throw.
  virtual bool on_caller() const { return false; }
  // Whether the output may be the residual's memory: each element is read before it is written, in the same task.
  virtual bool works_on_residual() const { return false; }
};

// How the result's error relates to the same sum in another order.
enum class ErrorClass : unsigned char { exact, winograd, strassen, bfloat16, rounded, winograd_1968 };
constexpr std::string_view error_class_name(ErrorClass error) {
  constexpr std::string_view names[] = {"exact", "winograd", "strassen", "bfloat16", "rounded", "winograd_1968"};
  return names[static_cast<int>(error)];
}

struct RoutineInfo {
  std::string layer_type;
  std::string algorithm;                // "direct"
  Isa isa = Isa::scalar;                // that it needs
  bool isa_in_name = true;              // false for code without vector kernels (copies, views)
  Schema in, out;                       // of the blobs; see Routine::input_schema
  std::vector<Schema> others = {};      // of inputs behind the first, as many as are not in `in`
  std::optional<Schema> residual = {};  // if not `out`
  ErrorClass error = ErrorClass::exact;
  bool spreads_nonfinite = false;  // NaN or Inf may reach outputs that do not depend on them
  bool fallback = false;           // a candidate only where no other routine accepts
  bool view = false;               // the output is the input's memory at view_offset(); run() is never called
  int inplace_input = -1;          // the output may be this input's memory
  bool quantizes_first = false;    // does PostOps::quantize_first
  bool exploits_sparsity = false;  // makes use of what is special about weights (ConstantData::traits)
};

class Routine {
 public:
  explicit Routine(RoutineInfo info) : info_(std::move(info)) {}
  virtual ~Routine() = default;
  const RoutineInfo& info() const { return info_; }
  // Hash of the sources that decide what it does and how fast: what was measured under another hash was other code.
  virtual std::string source_hash() const { return std::string(sources_); }

  // A residual comes in info().residual or the output's schema, the others in info().others, or info().in where that
  // has none for them.
  virtual Schema input_schema(const Problem& problem, int input) const;
  virtual Schema output_schema(const Problem&, int) const { return info_.out; }
  std::vector<Schema> input_schemas(const Problem& problem) const;
  std::vector<Schema> output_schemas(const Problem& problem) const;
  virtual Refusal check(const Problem& problem) const = 0;
  // Whether an accepted problem is worth measuring: false where the time that it takes to tune would never come back.
  virtual bool promising(const Problem&) const { return true; }
  virtual std::vector<std::string> param_names() const { return {}; }
  // Combinations worth profiling, the default first; never empty.
  virtual std::vector<Tuning> tunings(const Problem&) const { return {{}}; }
  // What prepare() wants to have packed ahead; of no sections if that is nothing. It may depend on the layer and
  // pack_key(), not otherwise on the tuning or on blob shapes, and so may what is packed.
  virtual Packing packing(const Problem&, const Tuning&) const { return {}; }
  // Fills every element of such a packing.
  virtual void pack(const Problem&, const Tuning&, Packed&) const {}
  // A packing of its own; null if it has no sections.
  std::shared_ptr<const Packed> packed(const Problem& problem, const Tuning& tuning) const;
  // Bytes that it is going to have, before anything is packed: what the option max_memory bounds.
  size_t packed_bytes(const Problem& problem, const Tuning& tuning) const {
    return packing(problem, tuning).value_bytes();
  }
  // Whatever of the tuning and of the blob shapes a packing depends on; packings of equal weights and keys are shared.
  // All of the tuning is the default.
  virtual std::string pack_key(const Problem& problem, const Tuning& tuning) const;
  virtual std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                                  std::shared_ptr<const Packed> packed) const = 0;

  // Relative L2 error to expect of the result on data without structure, zero for sums in any order: what max_error is
  // held against.
  virtual double expected_error(const Problem&, const Tuning&) const { return 0; }

  // A view's elements from the input's start to the output's, where the input has these strides.
  virtual int64_t view_offset(const Problem&, const Strides&) const { return 0; }
  // A view's strides in a strided output, made from the input's.
  virtual Strides view_strides(const Problem& problem, const Strides& in) const;

  // `layer/schema/algorithm[_isa]{params}`; the schema is `in[,other...][+residual][->out]`, what is as `in` or `out`
  // left out.
  std::string descriptor(const Tuning& tuning = {}) const;

 private:
  friend class RoutineList;
  RoutineInfo info_;
  std::string_view sources_;
};

class RoutineList {
 public:
  // Whose sources the routines to come are made of: a registration function's, by its name.
  void begin(std::string_view function);
  template <typename R, typename... Args>
  void add(Args&&... args) {
    take_in(std::make_unique<R>(std::forward<Args>(args)...));
  }
  void take_in(std::unique_ptr<Routine> routine) {
    routine->sources_ = sources_;
    routines_.push_back(std::move(routine));
  }
  std::vector<std::unique_ptr<const Routine>> take() { return std::move(routines_); }

 private:
  std::string_view sources_;
  std::vector<std::unique_ptr<const Routine>> routines_;
};

}  // namespace softneuro
