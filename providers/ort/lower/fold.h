// Arithmetic on shapes: what ONNX models compute at run time although it follows from the inputs' shapes.
#pragma once

#include <vector>

#include "base/shape.h"
#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

class Lowering;

// Whether the op can be computed ahead once its inputs are known.
bool can_fold(const HostNode& node);
// Whether it needs its input's shape only.
bool reads_shape_only(const HostNode& node);
// Computes the node if that can be done now; its outputs are known then.
bool fold(Lowering& low);

}  // namespace softneuro::ort
