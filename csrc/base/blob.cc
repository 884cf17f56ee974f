#include "base/blob.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace softneuro {
namespace {

constexpr std::pair<int64_t, int64_t> any_integer{std::numeric_limits<int64_t>::min(),
                                                  std::numeric_limits<int64_t>::max()};

// The integers that a type holds each exactly.
std::pair<int64_t, int64_t> integers_of(DType dtype) {
  if (dtype_kind(dtype) == DTypeKind::boolean) return {0, 1};
  return with_dtype(dtype, [](auto kind) -> std::pair<int64_t, int64_t> {
    using T = decltype(kind);
    if constexpr (std::is_integral_v<T>) {
      return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    } else if constexpr (std::is_floating_point_v<T>) {
      return {-(int64_t{1} << std::numeric_limits<T>::digits), int64_t{1} << std::numeric_limits<T>::digits};
    } else if constexpr (requires { T::digits; }) {
      return {-(int64_t{1} << T::digits), int64_t{1} << T::digits};
    } else {
      return {1, 0};  // none
    }
  });
}

bool is_real(DType dtype) { return dtype_kind(dtype) == DTypeKind::real; }

std::string range_text(int64_t least, int64_t most) { return std::to_string(least) + ".." + std::to_string(most); }

// What storage and speed depend on.
std::string class_text(const Quantization& q) {
  std::string text = "q(" + range_text(q.least, q.most);
  text += q.axis < 0 ? "" : ",axis=" + std::to_string(q.axis);
  bool zeros = true;
  for (const int32_t zero : q.zero_points) zeros = zeros && zero == 0;
  if (!zeros) text += ",zero_point";
  if (q.rounding == Quantization::Rounding::reciprocal) text += ",reciprocal";
  return text + ")";
}

std::string values_text(const Quantization& q) {
  if (q.axis < 0) return exact_number(static_cast<double>(q.scales[0])) + "," + std::to_string(q.zero_points[0]);
  return bytes_hash(q.scales.data(), q.scales.size() * sizeof(float)) +
         bytes_hash(q.zero_points.data(), q.zero_points.size() * sizeof(int32_t));
}

}  // namespace

void check_quantization(const Quantization& q, const Shape& shape) {
  if (q.axis < -1 || q.axis >= shape.rank()) {
    throw Error("quantization axis " + std::to_string(q.axis) + " is not one of shape " + shape.str());
  }
  const int64_t count = q.axis < 0 ? 1 : shape[q.axis];
  if (static_cast<int64_t>(q.scales.size()) != count || static_cast<int64_t>(q.zero_points.size()) != count) {
    throw Error("quantization has " + std::to_string(q.scales.size()) + " scales and " +
                std::to_string(q.zero_points.size()) + " zero points where " + std::to_string(count) + " are needed");
  }
  const bool fits_byte = (q.least >= 0 && q.most <= 255) || (q.least >= -128 && q.most <= 127);
  if (q.least >= q.most || !fits_byte) {
    throw Error("quantized values from " + std::to_string(q.least) + " to " + std::to_string(q.most) +
                " are not a range of eight bits");
  }
  for (const float scale : q.scales) {
    if (!std::isfinite(scale) || scale <= 0) {
      throw Error("a quantization scale is " + exact_number(static_cast<double>(scale)), {},
                  "scales are positive and finite");
    }
  }
  for (const int32_t zero : q.zero_points) {
    if (zero < q.least || zero > q.most) {
      throw Error("zero point " + std::to_string(zero) + " is outside " + range_text(q.least, q.most));
    }
  }
}

std::string TensorDesc::str() const {
  std::string text = shape.str();
  if (kind == ValueKind::boolean) text += ":bool";
  if (kind == ValueKind::integer) {
    text += std::pair(least, most) == any_integer ? ":int" : ":int(" + range_text(least, most) + ")";
  }
  if (quantization != nullptr) text += ":" + class_text(*quantization);
  return text;
}

std::string TensorDesc::exact() const {
  return quantization == nullptr ? str() : str() + "[" + values_text(*quantization) + "]";
}

bool operator==(const TensorDesc& a, const TensorDesc& b) {
  if (a.shape != b.shape || a.kind != b.kind) return false;
  if (a.kind == ValueKind::integer && (a.least != b.least || a.most != b.most)) return false;
  return same_quantization(a, b);
}

bool same_quantization(const TensorDesc& a, const TensorDesc& b) {
  if (a.quantization == b.quantization) return true;
  return a.quantization != nullptr && b.quantization != nullptr && *a.quantization == *b.quantization;
}

TensorDesc desc_of(const Shape& shape, DType dtype) {
  if (is_real(dtype)) return {shape};
  if (dtype_kind(dtype) == DTypeKind::boolean) return {.shape = shape, .kind = ValueKind::boolean};
  if (dtype_kind(dtype) == DTypeKind::quantized)
    throw Error(std::string(dtype_name(dtype)) + " has no values without its quantization's parameters");
  const auto [least, most] = integers_of(dtype);
  return {.shape = shape, .kind = ValueKind::integer, .least = least, .most = most};
}

Schema natural_schema(const TensorDesc& desc) {
  Schema schema;
  if (desc.quantization != nullptr) schema.dtype = DType::qint8;
  if (desc.kind == ValueKind::boolean) schema.dtype = DType::boolean;
  if (desc.kind == ValueKind::integer) {
    for (const DType dtype : {DType::uint8, DType::int8, DType::int32, DType::int64}) {
      const auto [least, most] = integers_of(dtype);
      schema.dtype = dtype;
      if (desc.least >= least && desc.most <= most) break;
    }
  }
  return schema;
}

Refusal fits(const TensorDesc& desc, const Schema& schema) {
  if (!layout_fits(desc.shape, schema.layout)) {
    return "layout " + schema.layout.str() + " does not fit shape " + desc.shape.str();
  }
  const auto declined = [&](const std::string& what) {
    return Refusal(std::string(dtype_name(schema.dtype)) + " does not hold " + what);
  };
  if (dtype_kind(schema.dtype) == DTypeKind::quantized) {
    return desc.quantization != nullptr ? Refusal() : declined("values without quantization parameters");
  }
  switch (desc.kind) {
    case ValueKind::real:
      return is_real(schema.dtype) ? Refusal() : declined("reals");
    case ValueKind::boolean:
      return Refusal();
    case ValueKind::integer: {
      const auto [least, most] = integers_of(schema.dtype);
      if (desc.least >= least && desc.most <= most) return {};
      return declined("integers of " + range_text(desc.least, desc.most));
    }
  }
  return {};
}

size_t bytes(const TensorDesc& desc, const Schema& schema) {
  return dtype_bytes(schema.dtype, physical_elements(desc.shape, schema.layout));
}

}  // namespace softneuro
