#include "providers/ort/run/kernel.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>

#include "layers/host/host.h"
#include "providers/ort/abi/api.h"
#include "providers/ort/abi/status.h"
#include "providers/ort/graph/read_graph.h"
#include "providers/ort/run/region_call.h"

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace softneuro::ort {
namespace {

// The runtime's own locks order what a call hands to its threads and gets back. A thread sanitizer does not see them,
// as the runtime is not built for it, and has to be told.
void hand_over([[maybe_unused]] void* what) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(what);
#endif
}
void take_over([[maybe_unused]] void* what) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(what);
#endif
}

struct RegionKernel : OrtNodeComputeInfo {
  std::shared_ptr<Region> region;
  std::vector<size_t> inputs, outputs;  // by the region's: place at the fused node
};

RunInput run_input(const OrtValue* value) {
  int type = 0;
  const int64_t* dims = nullptr;
  size_t rank = 0;
  call(fn::GetTensorElementTypeAndShapeDataReference, value, &type, &dims, &rank);
  return {ElementType(type).known(), {dims, rank}, get<const void*>(fn::GetTensorData, value)};
}

void* output_memory(OrtKernelContext* context, size_t index, const std::vector<int64_t>& dims) {
  auto* value = get<OrtValue*>(fn::KernelContext_GetOutput, context, index, dims.data(), dims.size());
  return get<void*>(fn::GetTensorMutableData, value);
}

// Into an output of the runtime's, whose memory was another thread's a moment ago. The runtime's locks lie between,
// which a thread sanitizer does not see either: it is not to look.
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize_thread)) void copy(void* to, const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) static_cast<volatile char*>(to)[i] = static_cast<const volatile char*>(from)[i];
}
#else
void copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
#endif

class Run : public SessionRun {
 public:
  Run(const RegionKernel& kernel, OrtKernelContext* context)
      : kernel_(kernel), context_(context), pool_(context, kernel.region->threads()) {
    values_.reserve(kernel.inputs.size());
    for (const size_t index : kernel.inputs) {
      values_.push_back(get<const OrtValue*>(fn::KernelContext_GetInput, context, index));
    }
  }
  std::span<const OrtValue* const> inputs() const override { return values_; }
  OrtValue* output(size_t index, std::span<const int64_t> dims) override {
    return get<OrtValue*>(fn::KernelContext_GetOutput, context_, kernel_.outputs[index], dims.data(), dims.size());
  }
  const ParallelFor& pool() const override { return parallel_for_; }
  void alone(const std::function<void()>& work) override { pool_.alone(work); }

 private:
  const RegionKernel& kernel_;
  OrtKernelContext* context_;
  std::vector<const OrtValue*> values_;
  SessionPool pool_;
  ParallelFor parallel_for_ = pool_.parallel_for();
};

// Hands over what a call has computed elsewhere.
void give(Run& run, const std::vector<OrtRegionCall::Result>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const OrtRegionCall::Result& result = results[i];
    const size_t bytes = dtype_bytes(result.type, Shape(result.dims).elements());
    copy(get<void*>(fn::GetTensorMutableData, run.output(i, result.dims)), result.data, bytes);
  }
}

void run_net(const RegionKernel& kernel, OrtKernelContext* context, const Ready& ready,
             const std::vector<RunInput>& inputs) {
  const Net& net = *ready.net;
  const Places& places = Region::places(ready);
  std::vector<const void*> in;
  in.reserve(places.inputs.size());
  for (const int index : places.inputs) in.push_back(inputs[static_cast<size_t>(index)].data);
  std::vector<void*> out(net.output_descs().size());
  for (size_t i = 0; i < places.outputs.size(); ++i) {
    const GivenOutput& given = places.outputs[i];
    if (given.output >= 0) {
      out[static_cast<size_t>(given.output)] = output_memory(context, kernel.outputs[i], to_list(given.shape));
    } else {
      void* to = output_memory(context, kernel.outputs[i], given.known.dims);
      copy(to, given.known.data.get(), given.known.bytes());
    }
  }
  SessionPool pool(context, net.threads());
  ready.run(in, out, pool.parallel_for());
}

// False if inputs have values that only the host can tell what is wrong with.
bool runs_net(const RegionKernel& kernel, OrtKernelContext* context, const Ready& ready,
              const std::vector<RunInput>& inputs) {
  try {
    run_net(kernel, context, ready, inputs);
    return true;
  } catch (const RejectedInput&) {
    return false;
  }
}

OrtStatus* create_state(OrtNodeComputeInfo* info, OrtNodeComputeContext*, void** state) {
  return guarded("CreateState", [&] { *state = info; });
}

OrtStatus* compute(OrtNodeComputeInfo*, void* state, OrtKernelContext* context) {
  return guarded("Compute", [&] {
    const RegionKernel& kernel = *static_cast<const RegionKernel*>(static_cast<OrtNodeComputeInfo*>(state));
    Run run(kernel, context);
    std::vector<RunInput> inputs;
    inputs.reserve(kernel.inputs.size());
    for (const OrtValue* value : run.inputs()) inputs.push_back(run_input(value));
    Region& region = *kernel.region;
    const Signature signature = region.signature(inputs);
    const auto ready = region.core().find(signature, constant_weights);
    const bool has_net = ready != nullptr && ready->net != nullptr;
    if (has_net && runs_net(kernel, context, *ready, inputs)) return;
    OrtRegionCall call(region, signature, inputs, run);
    auto side = softneuro::Region::Side::host;
    if (has_net) {
      region.core().run_after_error(signature, call);
    } else if (ready != nullptr) {
      call.run_host();
    } else {
      side = region.core().run(signature, constant_weights, call);
    }
    if (side == softneuro::Region::Side::net) return give(run, call.net_results());
    if (call.in_place()) return;
    injected_failure("HostCopy");
    const std::vector<OrtRegionCall::Result> results = call.host_results();
    give(run, results);
    OutputDims dims;
    for (const OrtRegionCall::Result& result : results) dims.push_back(result.dims);
    region.note_outputs(signature, inputs, std::move(dims));
  });
}

void release_state(OrtNodeComputeInfo*, void*) {}  // the state is the kernel

}  // namespace

size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw Error("the fused node has no value '" + name + "'");
  return static_cast<size_t>(found - names.begin());
}

OrtNodeComputeInfo* make_kernel(std::shared_ptr<Region> region, std::vector<size_t> inputs,
                                std::vector<size_t> outputs) {
  auto kernel = std::make_unique<RegionKernel>();
  kernel->version = Runtime::get().api_version();
  kernel->create_state = create_state;
  kernel->compute = compute;
  kernel->release_state = release_state;
  kernel->region = std::move(region);
  kernel->inputs = std::move(inputs);
  kernel->outputs = std::move(outputs);
  return kernel.release();
}

void release_kernel(OrtNodeComputeInfo* kernel) { delete static_cast<RegionKernel*>(kernel); }

void SessionPool::alone(const std::function<void()>& work) {
  std::atomic<bool> done{false};
  std::exception_ptr error;
  // Tasks are taken in order: whoever has another one knows that the first is under way.
  parallel_for()(threads_, [&](int64_t task) {
    if (task > 0) return done.wait(false);
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    done = true;
    done.notify_all();
  });
  if (error != nullptr) std::rethrow_exception(error);
}

void SessionPool::run(void* pool, int64_t tasks, ParallelFor::Task task, void* arg) {
  struct Share {
    ParallelFor::Task task;
    void* arg;
    int64_t tasks;
    std::atomic<int64_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr error{};
  } share{task, arg, tasks};
  const auto* self = static_cast<const SessionPool*>(pool);
  const auto workers = static_cast<size_t>(std::min<int64_t>(self->threads_, tasks));
  // Workers take the tasks one by one, so that a slow core takes fewer.
  const auto work = [](void* user, size_t) {
    take_over(user);
    auto& mine = *static_cast<Share*>(user);
    try {
      for (int64_t i = mine.next.fetch_add(1); i < mine.tasks; i = mine.next.fetch_add(1)) mine.task(mine.arg, i);
    } catch (...) {  // the runtime's threads do not expect any
      if (!mine.failed.exchange(true)) mine.error = std::current_exception();
    }
    hand_over(user);
  };
  hand_over(&share);
  call(fn::KernelContext_ParallelFor, self->context_, static_cast<void (*)(void*, size_t)>(work), workers, size_t{0},
       &share);
  take_over(&share);
  if (share.failed.load()) std::rethrow_exception(share.error);
}

}  // namespace softneuro::ort
