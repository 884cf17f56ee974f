// Running prepared nets on torch's threads and into torch's tensors, on the LibTorch stable ABI.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/net_cache.h"

namespace softneuro {

// Names a region in torch.profiler; nothing when no profiler listens is its cost within torch.
class ProfilerRange {
 public:
  explicit ProfilerRange(std::string_view region);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  AtenRecordFunctionHandle handle_ = nullptr;
};

// Appends an input's form and sizes to the signature that a net is looked up by. The form is all else that the net
// depends on: the rank, the number of the element type above the lowest byte, and above that whether channels come
// last. True if nets take the tensor as it lies; if not, what was appended is the form of its row-major copy.
bool append_input(AtenTensorHandle input, std::vector<int64_t>& signature);

// A new tensor for one of the net's outputs, which the caller owns. Throws where torch cannot make it.
AtenTensorHandle empty_output(const Ready& ready, size_t output);

void run_on_torch(const Ready& ready, std::span<const void* const> inputs, std::span<void* const> outputs);

}  // namespace softneuro
