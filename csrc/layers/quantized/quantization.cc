#include "layers/quantized/quantization.h"

#include <algorithm>

namespace softneuro {

QuantizeSteps quantize_steps(const Quantization& q) {
  return {q.scales[0], q.rounding == Quantization::Rounding::reciprocal, q.zero_points[0], q.least, q.most};
}

ElementFormat quantized_format(const Quantization& q) {
  return {q.is_signed() ? DType::int8 : DType::uint8, q.scales[0], q.zero_points[0], q.least, q.most};
}

Lut make_lut(const Quantization& from, const Quantization& to, const std::function<double(double)>& function) {
  Lut table;
  for (int byte = 0; byte < 256; ++byte) {
    const int stored = from.is_signed() ? static_cast<int8_t>(byte) : byte;
    const double x = static_cast<double>(static_cast<float>(stored - from.zero_points[0]) * from.scales[0]);
    const double step = std::nearbyint(reference_quantized(to, function(x)) / static_cast<double>(to.scales[0]));
    table[static_cast<size_t>(byte)] = static_cast<uint8_t>(static_cast<int>(step) + to.zero_points[0]);
  }
  return table;
}

std::optional<ByteBounds> byte_bounds(const Problem& problem) {
  const Quantization& to = *problem.out().quantization;
  const Activation& activation = problem.layer->post.activation;
  if (!is_clamp(activation.kind)) return std::nullopt;
  const ClampBounds bounds = clamp_bounds(activation);
  const int32_t zero = to.zero_points[0];
  const auto least = static_cast<float>(to.least - zero), most = static_cast<float>(to.most - zero);
  return ByteBounds{std::clamp(bounds.lo / to.scales[0], least, most),
                    std::clamp(bounds.hi / to.scales[0], least, most), zero};
}

Refusal check_unsigned(const TensorDesc& desc) {
  if (desc.quantization == nullptr) return "a blob is not quantized";
  return desc.quantization->is_signed() ? Refusal("a blob's bytes are signed") : Refusal();
}

Refusal check_weight(const ConstantData& weight, int axis) {
  const Quantization* q = weight.desc().quantization.get();
  if (q == nullptr || !weight.at_hand()) return "the weights are not quantized";
  if (q->axis >= 0 && q->axis != axis) return "the weights have a scale for each of their inputs";
  const std::vector<int32_t>& zeros = q->zero_points;
  const bool one = std::all_of(zeros.begin(), zeros.end(), [&](int32_t z) { return z == zeros[0]; });
  return one ? Refusal() : Refusal("the weights have several zero points");
}

Refusal check_signed_weight(const ConstantData& weight, int axis) {
  if (const Refusal refusal = check_weight(weight, axis); !refusal.accepted()) return refusal;
  const Quantization& q = *weight.desc().quantization;
  if (!q.is_signed()) return "the weights' bytes are not signed";
  return q.zero_points[0] == 0 ? Refusal() : Refusal("the weights have a zero point");
}

std::vector<float> output_scales(const ConstantData& weight) {
  const Quantization& q = *weight.desc().quantization;
  return q.axis < 0 ? std::vector<float>(static_cast<size_t>(weight.shape()[0]), q.scales[0]) : q.scales;
}

}  // namespace softneuro
