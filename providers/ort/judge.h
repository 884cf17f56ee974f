// Whether a region's net beats the host's own execution of it, in time and in error.
#pragma once

#include <span>
#include <vector>

#include "providers/ort/region.h"

namespace softneuro::ort {

// Values like those of a normalised input or of an image, the same at every call. Integers that may be indices are 0
// or 1.
HostTensor made_up(DType type, std::vector<int64_t> dims);

// What a region's ops compute in float32, by the host. All memory but the results' is free again.
std::vector<ValueOwner> exact_results(const OpGraph& ops, std::span<const RunInput> inputs, int threads);

// Times both in turn on these inputs. `truth`: exact_results() where the host computes in shorter reals, else nothing.
// Throws Error if the host cannot run the region.
Verdict compare(const Net& net, const Ready& ready, const HostRegion& host, const OpGraph& ops,
                std::span<const RunInput> inputs, std::span<const ValueOwner> truth, int threads, double max_error);

// With the reason in words; `wins` only if the error is within bounds.
Verdict judged(Verdict verdict, double max_error);

}  // namespace softneuro::ort
