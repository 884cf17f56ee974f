// Constants of integers that a model dequantizes, as layers take them.
#pragma once

#include "base/refusal.h"
#include "layers/weights/constant_data.h"
#include "providers/ort/lower/quantized_values.h"

namespace softneuro::ort {

// Why layers do not take a constant operand, whose type is one of integers.
Refusal check_quantized_constant(const HostGraph& graph, const HostNode& node, const QuantizedInput& input);
// Eight bits stay as they are, with their scales. Unsigned ones around 128 become signed, which integer kernels want.
// 32 bits, and what has scales that are not positive and finite, become reals, computed when somebody asks.
Constant dequantized(const HostGraph& graph, const HostNode& node, const QuantizedInput& input);
// Integers with a factor for all, or for each index of the last axis.
Constant scaled_integers(const HostTensor& values, std::vector<double> factors);

// Bytes, less their zero point, as numbers: one for all, or one for each index of the last axis.
Constant numbers_of(const HostTensor& bytes, std::vector<int32_t> zero_points);
// Unsigned ones moved to signed ones, whatever their zero points; others as they are. Null unless they are bytes.
Constant signed_bytes(const Constant& values);
// [rows, columns] -> [columns, rows], scaled; still bytes. Null unless they are, and the factor is positive.
Constant transposed_bytes(const Constant& matrix, float factor);
// With scales times the factor. Null as above.
Constant scaled_bytes(const Constant& values, float factor);

}  // namespace softneuro::ort
