// QuantizeLinear and DequantizeLinear. A tensor of eight bits is a blob whose values lie on a grid, and its reals are
// that very blob.
#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/lower/quantized_constants.h"
#include "providers/ort/lower/quantized_values.h"

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

// With a number for each index of the axis of scales.
int with_each(Lowering& low, int x, const char* function, std::vector<float> numbers) {
  Shape shape(std::vector<int64_t>(static_cast<size_t>(low.rank(0)), 1));
  shape[static_cast<int>(low.axis(low.node().integer("axis", 1), low.rank(0)))] = static_cast<int64_t>(numbers.size());
  const auto other = constant_from(shape, std::move(numbers));
  return low.add("binary", {x}, {{"function", std::string(function)}}, {{"other", other}});
}
// Zero points that differ; none otherwise.
std::vector<float> zero_points(const Lowering& low) {
  if (!low.node().has_input(2) || is_one(low.known(2).integers())) return {};
  return low.known(2).reals();
}

void convert_quantize(Lowering& low) {
  int x = low.blob(0);
  std::vector<float> scales = low.known(1).reals();
  if (scales.size() > 1) {
    for (float& scale : scales) scale = static_cast<float>(1 / static_cast<double>(scale));
    x = with_each(low, x, "mul", std::move(scales));
    if (auto zeros = zero_points(low); !zeros.empty()) x = with_each(low, x, "add", std::move(zeros));
  }
  low.set(x);
}

void convert_dequantize(Lowering& low) {
  if (low.is_known(0)) return low.set(low.dequantized({0, 1, 2}));
  int x = low.blob(0);
  if (std::vector<float> scales = low.known(1).reals(); scales.size() > 1) {
    if (auto zeros = zero_points(low); !zeros.empty()) x = with_each(low, x, "sub", std::move(zeros));
    x = with_each(low, x, "mul", std::move(scales));
  }
  low.set(x);
}

constexpr OpEntry quantize_entries[] = {
    {"QuantizeLinear", check_precision, convert_quantize, true, Holds::quantized, Domain::both},
    {"DequantizeLinear", check_real, convert_dequantize, true, Holds::quantized, Domain::both},
};

}  // namespace

std::span<const OpEntry> quantize_ops() { return quantize_entries; }

}  // namespace softneuro::ort
