// A net that is ready, run on torch's tensors by a caller that torch's dispatcher did not lead there: what the torch
// ops do for Python's module, which is built without torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/region.h"

namespace softneuro {

// `void*` is a tensor as torch has it.
struct KnownRun {
  // Runs the region's net for these weights, which the caller has just found to be so. Fills `outputs`
  // with new tensors that the caller owns, and returns how many: none where no net is ready (left_to_host() says
  // whether the host is to run the call), an input is not as nets take it, or there is no room. Throws what the host
  // does.
  size_t (*run)(Region& region, std::span<void* const> inputs, std::span<const int64_t> sizes, const WeightSet& weights,
                std::span<void*> outputs);
  // The tensor's object in Python, a new reference, or null with Python's error set. Needs the interpreter's lock.
  void* (*wrap)(void* tensor);
  void (*drop)(void* tensor);
};

// Address of the KnownRun of this process, which stays; 0 where torch has no Python that tensors can be given to.
int64_t known_run();

}  // namespace softneuro
