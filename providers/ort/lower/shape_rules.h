// How ONNX derives shapes, bounds and numbers from what a node is given.
#pragma once

#include <vector>

#include "base/shape.h"
#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

class Lowering;

// The real number that a float32 attribute was written as: 0.1, not 0.100000001.
double decimal(float value);
// Reshape's target, with its 0 and -1 resolved.
Shape reshaped(const HostNode& node, const Shape& in, const std::vector<int64_t>& wanted);
// No axes: all of size one.
Shape squeezed(const Shape& in, const std::vector<int64_t>& axes);
Shape unsqueezed(const Shape& in, const std::vector<int64_t>& axes);

struct SliceRange {
  int64_t axis, start, end, step;  // within the axis; start <= end if step > 0
};
// Ranges of the Slice at hand, with bounds cut as ONNX does.
std::vector<SliceRange> slice_ranges(const Lowering& low);

}  // namespace softneuro::ort
