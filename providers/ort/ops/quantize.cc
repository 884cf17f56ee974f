// QuantizeLinear and DequantizeLinear. A tensor of eight bits is a blob whose values lie on a grid, and its reals are
// that very blob.
#include "providers/ort/ops/ops.h"
#include "providers/ort/quantized_constants.h"

namespace softneuro::ort {
namespace {

Refusal check_precision(const OpView& view) {
  const auto precision = view.node().integer("precision", 0);
  const bool plain = precision == 0 || precision == ElementType(DType::float32).number();
  return plain ? Refusal() : Refusal("it divides in another precision");
}

Refusal check_real(const OpView& view) {
  const auto type = static_cast<int>(view.node().integer("output_dtype", 0));
  return type == 0 || is_real(ElementType(type)) ? Refusal() : Refusal("it makes " + ElementType(type).name());
}

void convert_quantize(Lowering& low) { low.set(low.blob(0)); }

void convert_dequantize(Lowering& low) {
  if (!low.is_known(0)) return low.set(low.blob(0));
  low.set(low.dequantized({0, 1, 2}));
}

constexpr OpEntry entries[] = {
    {"QuantizeLinear", check_precision, convert_quantize, true, Holds::quantized, Domain::both},
    {"DequantizeLinear", check_real, convert_dequantize, true, Holds::quantized, Domain::both},
};

}  // namespace

std::span<const OpEntry> quantize_ops() { return entries; }

}  // namespace softneuro::ort
