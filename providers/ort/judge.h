// Whether a region's net beats the host's own execution of it, in time and in error.
#pragma once

#include <span>
#include <vector>

#include "providers/ort/region.h"

namespace softneuro::ort {

// Values like those of a normalised input, the same at every call.
std::vector<float> made_up_values(int64_t count);

// Times both in turn on these inputs. Throws Error if the host cannot run the region.
Verdict compare(const Net& net, const Ready& ready, const HostRegion& host, const OpGraph& ops,
                std::span<const RunInput> inputs, int threads, double max_error);

// With the reason in words; `wins` only if the error is within bounds.
Verdict judged(Verdict verdict, double max_error);

}  // namespace softneuro::ort
