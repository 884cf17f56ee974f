// Packed weights of the routines on conv_bfloat16's kernels: split into parts, then the bias, padded with zeros.
#pragma once

#include <algorithm>

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "kernels/integers.h"
#include "layers/layer.h"
#include "layers/packed_floats.h"

namespace softneuro {

inline size_t bfloat16_biases(const ConvBfloat16Shape& shape, int block) {
  return static_cast<size_t>(round_up(shape.out_channels, block));
}

inline size_t bfloat16_weights_bytes(const ConvBfloat16Shape& shape, int block) {
  return conv_bfloat16_packed_bytes(shape, block) + bfloat16_biases(shape, block) * sizeof(float);
}

inline std::shared_ptr<const Packed> pack_bfloat16_weights(const ConvBfloat16Shape& shape, int block,
                                                           const Layer& layer) {
  auto packed =
      std::make_shared<PackedFloats>(static_cast<int64_t>(bfloat16_weights_bytes(shape, block) / sizeof(float)));
  conv_bfloat16_pack(shape, block, layer.weight("weight")->values().get(), packed->data());
  float* const to = packed->data() + conv_bfloat16_packed_bytes(shape, block) / sizeof(float);
  std::fill_n(to, bfloat16_biases(shape, block), 0.f);
  if (const Constant* bias = layer.find_weight("bias")) {
    std::copy_n((*bias)->values().get(), (*bias)->elements(), to);
  }
  return packed;
}

// The arguments that follow from the packed weights.
inline ConvBfloat16Args bfloat16_args(const ConvBfloat16Shape& shape, int block, const Layer& layer,
                                      const Packed* packed) {
  ConvBfloat16Args args{};
  args.shape = shape;
  args.weights = packed_floats(packed);
  args.epilogue.bias = packed_floats(packed) + conv_bfloat16_packed_bytes(shape, block) / sizeof(float);
  args.epilogue.activation = layer.post.activation;
  return args;
}

// Of the parts' own rounding and of the products that are left out; sums of any length have the same. With six products
// both are below what six times as many sums err by, measured with 2000 channels.
inline double bfloat16_error(int parts) { return parts == 3 ? 1.5e-6 : 5e-6; }
inline const char* bfloat16_name(int parts) { return parts == 3 ? "bf16x6" : "bf16x3"; }

}  // namespace softneuro
