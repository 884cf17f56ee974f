// A region as the host would run it: a session of its own with the CPU provider, made through the model-editor API.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "providers/ort/abi/api.h"
#include "providers/ort/graph/host_graph.h"
#include "providers/ort/graph/read_graph.h"

namespace softneuro::ort {

using ValueOwner = Owned<OrtValue, fn::ReleaseValue>;

// A tensor over memory that the caller keeps.
ValueOwner tensor_over(const void* data, DType type, std::span<const int64_t> dims);

// The entries of a session's configuration that a region's own session has to know, to compute as the user's does.
std::map<std::string, std::string> shared_entries(const std::map<std::string, std::string>& entries);

class HostRegion {
 public:
  struct Settings {
    int threads = 1;
    bool spin = false;   // idle threads wait busily, as the host's do by default
    bool open = false;   // sizes change: no plan of a run's memory is kept for each
    bool plain = false;  // op by op, as the model says: quantized ops in float32 between Q and DQ
    bool step = false;   // memory of a run is not kept for the next one, and errors are told by whoever runs it
    std::map<std::string, std::string> entries = {};  // of the session's configuration: see shared_entries()
    const OrtSessionOptions* base = nullptr;          // to start from, with nothing of what they would write
  };
  // Weights are borrowed: `ops` must outlive this. Throws Error if the runtime does not accept the graph,
  // NotImplemented if it has no kernels for it.
  HostRegion(const HostGraph& ops, const Settings& settings);
  ~HostRegion();

  // Values by the graph's inputs to those of its outputs. Any number of threads at once.
  std::vector<ValueOwner> run(std::span<const OrtValue* const> inputs) const;
  // Into tensors of the caller's.
  void run(std::span<const OrtValue* const> inputs, std::span<OrtValue* const> outputs) const;
  // An output as far as the runtime knows it, -1 for sizes that depend on more than shapes.
  TensorInfo output(size_t index) const;

 private:
  struct State;
  void run_session(std::span<const OrtValue* const> inputs, OrtValue** outputs) const;

  std::unique_ptr<State> state_;
};

}  // namespace softneuro::ort
