// ONNX's element types: THE table of their numbers, and which of them the core has.
#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"

namespace softneuro::ort {

// An element type by ONNX's number, whether the core has it or not.
class ElementType {
 public:
  constexpr ElementType() = default;  // undefined
  explicit constexpr ElementType(int number) : number_(number) {}
  ElementType(DType dtype);

  constexpr int number() const { return number_; }
  // Nothing for a type that the core does not have.
  std::optional<DType> dtype() const;
  // Throws Error naming a type that the core does not have.
  DType known() const;
  std::string name() const;
  friend bool operator==(const ElementType&, const ElementType&) = default;

 private:
  int number_ = 0;
};

// float32 and the halves, which nets compute with as float32.
constexpr bool is_real(DType dtype) { return dtype_kind(dtype) == DTypeKind::real; }
// The largest finite number of a real type.
float largest(DType real);
inline bool is_real(const ElementType& type) { return type.dtype() && is_real(*type.dtype()); }

}  // namespace softneuro::ort
