// What a blob is, before it has any memory: its shape and what its values mean. How it is stored is the schema's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "base/schema.h"

namespace softneuro {

// How a real value became a stored one: q = clamp(round(x / scale) + zero_point, least, most), rounded half to even.
struct Quantization {
  // ONNX divides by the scale, PyTorch's exported quantization multiplies by its float32 reciprocal.
  enum class Rounding : uint8_t { divides, reciprocal };

  std::vector<float> scales;  // one, or one per index of `axis`
  std::vector<int32_t> zero_points;
  int axis = -1;  // -1: per tensor
  int32_t least = 0, most = 255;
  Rounding rounding = Rounding::divides;

  bool is_signed() const { return least < 0; }
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

// Throws Error naming what is wrong: scales that are not positive and finite, zero points outside [least, most], an
// axis beyond the rank, another number of parameters than the axis has indices, a range that eight bits do not hold.
void check_quantization(const Quantization& quantization, const Shape& shape);

enum class ValueKind : uint8_t { real, integer, boolean };

struct TensorDesc {
  Shape shape;
  ValueKind kind = ValueKind::real;
  // Integers may have these values, so that it is known which types hold them.
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  std::shared_ptr<const Quantization> quantization = nullptr;  // of reals; null: not quantized

  // Shape and what storage and speed depend on, but no scales: equal layers of a network have costs in common.
  std::string str() const;
  // The same with all that results depend on.
  std::string exact() const;
  friend bool operator==(const TensorDesc& a, const TensorDesc& b);
};

// Whether both have the same parameters, or none.
bool same_quantization(const TensorDesc& a, const TensorDesc& b);

// A blob as hosts have it: what values a type of theirs can have. Not for qint8, which says nothing without parameters.
TensorDesc desc_of(const Shape& shape, DType dtype);
// The storage in which hosts have such values, row-major.
Schema natural_schema(const TensorDesc& desc);

// Whether the schema can hold the blob's values; the reason if not. Reals may lose digits, integers never.
Refusal fits(const TensorDesc& desc, const Schema& schema);
// Size of a dense blob, padding lanes included.
size_t bytes(const TensorDesc& desc, const Schema& schema);

}  // namespace softneuro
