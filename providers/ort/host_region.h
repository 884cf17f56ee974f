// A region as the host would run it: a session of its own with the CPU provider, made through the model-editor API.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "providers/ort/api.h"
#include "providers/ort/op_graph.h"

namespace softneuro::ort {

using ValueOwner = Owned<OrtValue, fn::ReleaseValue>;

// A tensor over memory that the caller keeps.
ValueOwner tensor_over(const void* data, ElementType type, std::span<const int64_t> dims);

class HostRegion {
 public:
  // Weights are borrowed: `ops` must outlive this. `spin`: whether idle threads wait busily, as the host's do by
  // default. Throws Error if the runtime does not accept the graph.
  HostRegion(const OpGraph& ops, int threads, bool spin);
  ~HostRegion();

  // Values by the graph's inputs to those of its outputs. Any number of threads at once.
  std::vector<ValueOwner> run(std::span<const OrtValue* const> inputs) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace softneuro::ort
