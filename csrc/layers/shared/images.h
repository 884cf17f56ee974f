// Kernels that take one image of each blob at a time.
#pragma once

#include "layers/contract/routine.h"

namespace softneuro {

inline const float* input_image(const RunArgs& args, int input, int64_t image) {
  return args.in[input].f32() + image * args.in[input].strides[0];
}
inline float* output_image(const RunArgs& args, int64_t image) { return args.out.f32() + image * args.out.strides[0]; }
// Null if there is none.
inline const float* residual_image(const RunArgs& args, bool has_residual, int64_t image) {
  return has_residual ? input_image(args, 1, image) : nullptr;
}

// A kernel's arguments with the image's memory in them.
template <typename Args>
Args for_image(const Args& kernel, const RunArgs& args, bool has_residual, int64_t image) {
  Args call = kernel;
  call.src = input_image(args, 0, image);
  call.dst = output_image(args, image);
  call.epilogue.residual = residual_image(args, has_residual, image);
  return call;
}

}  // namespace softneuro
