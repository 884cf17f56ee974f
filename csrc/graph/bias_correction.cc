#include "graph/bias_correction.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace softneuro {
namespace {

bool is_of_floats(const Constant& weight) {
  return weight->desc().kind == ValueKind::real && weight->desc().quantization == nullptr;
}

// This makes reals of a weight in blocks of few bits.
std::vector<float> values_of(const BlockWeights& blocks, const Shape& shape, int bits) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(shape.elements()));
  const ConstantData::Memory& memory = blocks.weight->memory();
  const auto* bytes = static_cast<const uint8_t*>(memory.get());
  const ConstantData::Values scales = blocks.scales->values();
  const int64_t block = BlockWeights::block, per_row = (shape[1] + block - 1) / block;
  const int middle = 1 << (bits - 1);
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t i = 0; i < shape[1]; ++i) {
      const int64_t b = row * per_row + i / block, at = i % block;
      const int byte = bytes[b * block * bits / 8 + at * bits / 8];
      const int step = bits == 8 ? byte : byte >> (at % 2 * 4) & 15;
      values.push_back(scales.get()[b] * static_cast<float>(step - middle));
    }
  }
  return values;
}

// This makes reals of the weights that a form has. The result is empty where it has none.
std::vector<float> rounded_values(const Constant& weight, const Grids& grids, std::string_view form) {
  if (form == "blocks8" || form == "blocks4") {
    const int bits = form.back() - '0';
    const BlockWeights blocks = grids.blocks_of(weight, bits);
    return blocks.weight == nullptr ? std::vector<float>() : values_of(blocks, weight->shape(), bits);
  }
  const Constant bytes = grids.bytes_of(weight);
  if (bytes == nullptr) return {};
  const ConstantData::Values values = bytes->values();
  return {values.get(), values.get() + bytes->elements()};
}

}  // namespace

bool has_correctable_bias(const Layer& layer) {
  if (layer.type != "conv2d" && layer.type != "linear") return false;
  const Constant* weight = layer.find_weight("weight");
  const Constant* bias = layer.find_weight("bias");
  return weight != nullptr && is_of_floats(*weight) && (bias == nullptr || is_of_floats(*bias)) &&
         !layer.inputs.empty();
}

std::vector<double> shift_of(const Constant& weight, const Grids& grids, std::string_view form,
                             const std::vector<double>& means) {
  const Shape& shape = weight->shape();
  if (shape.rank() < 2 || shape.elements() == 0) return {};
  const int64_t rows = shape[0], inputs = shape[1], taps = shape.elements() / (rows * inputs);
  const auto channels = static_cast<int64_t>(means.size());
  if (channels == 0 || channels % inputs != 0 || rows % (channels / inputs) != 0) return {};
  const int64_t rows_of_group = rows / (channels / inputs);
  const std::vector<float> rounded = rounded_values(weight, grids, form);
  if (rounded.empty()) return {};
  const ConstantData::Values values = weight->values();
  std::vector<double> shift;
  for (int64_t row = 0; row < rows; ++row) {
    const double* mean = means.data() + row / rows_of_group * inputs;
    double sum = 0;
    for (int64_t i = 0; i < inputs; ++i) {
      double more = 0;
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t at = (row * inputs + i) * taps + t;
        more += static_cast<double>(rounded[static_cast<size_t>(at)]) - static_cast<double>(values.get()[at]);
      }
      sum += more * mean[i];
    }
    shift.push_back(sum);
  }
  return shift;
}

double weight_error(const Constant& weight, const Grids& grids, std::string_view form) {
  constexpr int64_t enough = 1 << 18;
  Shape shape = weight->shape();
  if (shape.rank() < 1 || shape.elements() == 0) return INFINITY;
  shape[0] = std::clamp<int64_t>(enough * shape[0] / shape.elements(), 1, shape[0]);
  const ConstantData::Values values = weight->values();
  const Constant part = constant_from(shape, {values.get(), values.get() + shape.elements()});
  const std::vector<float> rounded = rounded_values(part, grids, form);
  if (rounded.empty()) return INFINITY;
  double off = 0, all = 0;
  for (size_t i = 0; i < rounded.size(); ++i) {
    const double value = static_cast<double>(values.get()[i]), other = static_cast<double>(rounded[i]);
    off += (other - value) * (other - value);
    all += value * value;
  }
  if (!std::isfinite(off)) return INFINITY;
  return all > 0 ? std::sqrt(off / all) : 0;
}

void take_out(Layer& layer, const std::vector<double>& shift) {
  std::vector<float> bias(shift.size());
  const Constant* own = layer.find_weight("bias");
  const ConstantData::Values values = own != nullptr ? (*own)->values() : nullptr;
  for (size_t i = 0; i < shift.size(); ++i) {
    bias[i] = static_cast<float>((own != nullptr ? static_cast<double>(values.get()[i]) : 0) - shift[i]);
  }
  Constant made = constant_from(Shape{static_cast<int64_t>(shift.size())}, std::move(bias));
  // Roles stay in order, as keys of packings go by it.
  const auto known = std::find_if(layer.weights.begin(), layer.weights.end(),
                                  [](const auto& weight) { return weight.first == "bias"; });
  if (known != layer.weights.end()) {
    known->second = std::move(made);
  } else {
    layer.set_weight("bias", std::move(made));
  }
}

}  // namespace softneuro
