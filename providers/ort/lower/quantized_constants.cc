#include "providers/ort/lower/quantized_constants.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

struct Parameters {
  HostTensor values;
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  int axis = -1;  // of several scales
};

// The axis that a list of scales goes along.
int64_t axis_of(const HostNode& node, int rank) {
  if (is_dequantize(node)) {
    const int64_t given = node.integer("axis", 1);
    return given < 0 ? given + rank : given;
  }
  if (node.op == "QLinearConv" || (node.op == "QGemm" && node.integer("transB", 0) != 0)) return 0;
  return rank - 1;
}

Parameters parameters_of(const HostGraph& graph, const HostNode& node, const QuantizedInput& input) {
  const auto constant = [&](size_t at, const char* what) -> const HostTensor& {
    const auto& found = node.has_input(at) ? graph.value(node.inputs[at]).constant : nullptr;
    if (!found) throw Error(std::string(what) + " is not constant");
    return *found;
  };
  Parameters made{constant(input.value, "an operand"), {}, {}};
  const DType type = made.values.type;
  if (type != DType::int8 && type != DType::uint8 && type != DType::int32) {
    throw Error("a constant of " + std::string(dtype_name(type)) + " is dequantized");
  }
  const HostTensor& scale = constant(input.scale, "its scale");
  if (!is_real(scale.type)) throw Error("its scale is " + std::string(dtype_name(scale.type)));
  made.scales = scale.reals();
  const size_t count = made.scales.size();
  if (count != 1) {
    const auto rank = static_cast<int>(made.values.dims.size());
    const int64_t axis = axis_of(node, rank);
    const bool blocked = node.integer("block_size", 0) != 0;
    // A list may be written as a row, or as a batch of rows.
    const bool is_list = !scale.dims.empty() && scale.dims.back() == static_cast<int64_t>(count) && !blocked;
    if (axis < 0 || axis >= rank) throw Error("the axis of its scales is not one of the tensor's");
    if (!is_list || (input.value == 0 && !is_dequantize(node)) ||
        made.values.dims[static_cast<size_t>(axis)] != static_cast<int64_t>(count)) {
      throw Error("it has " + std::to_string(count) + " scales, not one for each index of an axis");
    }
    made.axis = static_cast<int>(axis);
  }
  made.zero_points.assign(count, 0);
  if (node.has_input(input.zero_point)) {
    const HostTensor& zero = constant(input.zero_point, "its zero point");
    const std::vector<int64_t> zeros = zero.type == type ? zero.integers() : std::vector<int64_t>();
    if (zeros.size() != count) throw Error("its zero points are not as many as its scales, or of another type");
    std::transform(zeros.begin(), zeros.end(), made.zero_points.begin(), [](int64_t z) { return int32_t(z); });
  }
  return made;
}

template <typename Real>
Constant lazy_reals(const Shape& shape, Real real) {
  return std::make_shared<const ConstantData>(shape, [=]() -> ConstantData::Values {
    const auto count = static_cast<size_t>(shape.elements());
    std::shared_ptr<float[]> to(new float[count]);
    for (size_t i = 0; i < count; ++i) to[i] = real(i);
    return {to, to.get()};
  });
}

// As the host dequantizes: in float32.
Constant reals(const Parameters& from) {
  const Shape shape(from.values.dims);
  const auto channels = from.scales.size();
  const auto inner = static_cast<size_t>(from.axis < 0 ? 1 : shape.product(from.axis + 1, shape.rank()));
  return lazy_reals(shape, [=, values = from.values.integers()](size_t i) {
    const size_t channel = i / inner % channels;
    const int64_t steps = values[i] - from.zero_points[channel];
    return static_cast<float>(steps) * from.scales[channel];
  });
}

std::shared_ptr<uint8_t[]> new_bytes(int64_t count) {
  return std::shared_ptr<uint8_t[]>(new uint8_t[static_cast<size_t>(count)]);
}

// Unsigned to signed, or back: 128 less or more.
ConstantData::Memory moved_bytes(const ConstantData::Memory& memory, int64_t count) {
  const auto* from = static_cast<const uint8_t*>(memory.get());
  const auto moved = new_bytes(count);
  std::transform(from, from + count, moved.get(), [](uint8_t byte) { return uint8_t(byte ^ 128); });
  return moved;
}

bool is_bytes(const Constant& constant, float factor) {
  return constant->dtype() == DType::qint8 && constant->memory() != nullptr && std::isfinite(factor) && factor > 0;
}

Constant with_factor(TensorDesc desc, ConstantData::Memory memory, float factor) {
  Quantization q = *desc.quantization;
  for (float& scale : q.scales) {
    scale *= factor;
    if (!std::isfinite(scale) || scale <= 0) return nullptr;
  }
  desc.quantization = std::make_shared<const Quantization>(std::move(q));
  return std::make_shared<const ConstantData>(std::move(desc), DType::qint8, std::move(memory));
}

}  // namespace

Refusal check_quantized_constant(const HostGraph& graph, const HostNode& node, const QuantizedInput& input) {
  try {
    parameters_of(graph, node, input);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

Constant dequantized(const HostGraph& graph, const HostNode& node, const QuantizedInput& input) {
  Parameters found = parameters_of(graph, node, input);
  const auto positive = [](float scale) { return std::isfinite(scale) && scale > 0; };
  if (found.values.type == DType::int32 || !std::all_of(found.scales.begin(), found.scales.end(), positive)) {
    return reals(found);
  }
  ConstantData::Memory memory = found.values.data;
  Quantization q{.scales = found.scales, .zero_points = found.zero_points, .axis = found.axis};
  const auto centred = [](int32_t zero_point) { return zero_point == 128; };
  if (found.values.type == DType::int8) {
    q.least = -128, q.most = 127;
  } else if (std::all_of(q.zero_points.begin(), q.zero_points.end(), centred)) {
    memory = moved_bytes(memory, found.values.elements());
    q.least = -128, q.most = 127;
    std::fill(q.zero_points.begin(), q.zero_points.end(), 0);
  }
  const TensorDesc desc{.shape = Shape(found.values.dims),
                        .quantization = std::make_shared<const Quantization>(std::move(q))};
  return std::make_shared<const ConstantData>(desc, DType::qint8, std::move(memory));
}

Constant scaled_integers(const HostTensor& values, std::vector<double> factors) {
  return lazy_reals(Shape(values.dims), [=, integers = values.integers()](size_t i) {
    return static_cast<float>(static_cast<double>(integers[i]) * factors[i % factors.size()]);
  });
}

Constant transposed_bytes(const Constant& matrix, float factor) {
  if (!is_bytes(matrix, factor)) return nullptr;
  const int64_t rows = matrix->shape()[0], columns = matrix->shape()[1];
  const auto* from = static_cast<const uint8_t*>(matrix->memory().get());
  const auto to = new_bytes(rows * columns);
  constexpr int64_t tile = 64;  // lines of the cache that are in use at once
  for (int64_t left = 0; left < columns; left += tile) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t end = std::min(left + tile, columns);
      for (int64_t column = left; column < end; ++column) to[column * rows + row] = from[row * columns + column];
    }
  }
  TensorDesc desc = matrix->desc();
  desc.shape = {columns, rows};
  Quantization q = *desc.quantization;
  if (q.axis >= 0) q.axis = 1 - q.axis;
  desc.quantization = std::make_shared<const Quantization>(std::move(q));
  return with_factor(std::move(desc), to, factor);
}

Constant numbers_of(const HostTensor& bytes, std::vector<int32_t> zero_points) {
  Quantization q{.scales = std::vector<float>(zero_points.size(), 1), .zero_points = std::move(zero_points)};
  if (q.scales.size() > 1) q.axis = static_cast<int>(bytes.dims.size()) - 1;
  if (bytes.type == DType::int8) q.least = -128, q.most = 127;
  const TensorDesc desc{.shape = Shape(bytes.dims), .quantization = std::make_shared<const Quantization>(std::move(q))};
  return std::make_shared<const ConstantData>(desc, DType::qint8, bytes.data);
}

Constant signed_bytes(const Constant& values) {
  if (!is_bytes(values, 1)) return nullptr;
  TensorDesc desc = values->desc();
  if (desc.quantization->is_signed()) return values;
  Quantization q = *desc.quantization;
  q.least -= 128, q.most -= 128;
  for (int32_t& zero : q.zero_points) zero -= 128;
  desc.quantization = std::make_shared<const Quantization>(std::move(q));
  return std::make_shared<const ConstantData>(desc, DType::qint8, moved_bytes(values->memory(), values->elements()));
}

Constant scaled_bytes(const Constant& values, float factor) {
  return is_bytes(values, factor) ? with_factor(values->desc(), values->memory(), factor) : nullptr;
}

}  // namespace softneuro::ort
