// What layers that work element by element share: constants in a layout, and one way to run them in any layout.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/elementwise/elementwise.h"
#include "layers/contract/routine.h"
#include "layers/weights/in_layout.h"

namespace softneuro {

// The layouts that a level's vector routines work in: nchw, nhwc and its own blocked one.
std::vector<Schema> vector_schemas(Isa isa);

// Describes a level's vector routine that may work in place.
RoutineInfo pointwise_info(const char* layer_type, Isa isa, const Schema& schema);

// [1,C,1,...] of `rank` axes.
Shape channel_shape(int64_t channels, int rank);

// An operand whose shape broadcasts to the output's: a blob or a constant.
struct PointwiseOperand {
  Shape shape;
  int input = -1;                   // index in RunArgs::in
  const float* constant = nullptr;  // in the job's layout, of the output's rank or one number of rank 0
};

// out = activation(f(a, b) + residual), f being `op` or, without b, `function`.
struct PointwiseJob {
  Isa isa = Isa::scalar;
  Layout layout;
  Shape out;
  int threads = 1;
  PostOps post;
  std::optional<ElementwiseOp> op;
  Activation function;
  PointwiseOperand a, b;
  int64_t c_offset = 0;                  // scale_shift: elements from b's values to c's
  std::shared_ptr<const Packed> packed;  // keeps the constants alive
};

// Isa, layout, output, threads and post-ops of a problem; a is its first input.
PointwiseJob pointwise_job(const Problem& problem, const RoutineInfo& info);
std::unique_ptr<const Prepared> prepare_pointwise(PointwiseJob job);

}  // namespace softneuro
