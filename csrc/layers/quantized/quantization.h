// Quantized blobs as kernels take them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kernels/epilogue.h"
#include "kernels/look_up/look_up.h"
#include "kernels/quantize/quantize.h"
#include "layers/contract/routine.h"

namespace softneuro {

// A quantized blob's steps; its elements as they come out of kernels, and go into them.
QuantizeSteps quantize_steps(const Quantization& quantization);
ElementFormat quantized_format(const Quantization& quantization);

// The bytes that function(real value of each byte of `from`) becomes as `to`.
Lut make_lut(const Quantization& from, const Quantization& to, const std::function<double(double)>& function);

// What the steps of a problem's output are clamped to, its activation included; none for an activation that is no
// clamp.
struct ByteBounds {
  float least, most;  // without `zero`
  int32_t zero;
};
std::optional<ByteBounds> byte_bounds(const Problem& problem);

// Whether kernels take the blob as unsigned bytes.
Refusal check_unsigned(const TensorDesc& desc);
// Whether weights are bytes with one zero point and one scale, or one for each output.
Refusal check_weight(const ConstantData& weight, int axis);
// Whether they are signed bytes around zero, with one scale or one for each output.
Refusal check_signed_weight(const ConstantData& weight, int axis = 0);
// The scale of each index of axis 0 of such weights.
std::vector<float> output_scales(const ConstantData& weight);

}  // namespace softneuro
