#include "providers/ort/graph/element_types.h"

#include <iterator>
#include <limits>
#include <string_view>

#include "base/elements.h"
#include "base/error.h"

namespace softneuro::ort {
namespace {

struct Row {
  std::optional<DType> dtype;
  std::string_view name = {};  // of a type that the core does not have
};

// By ONNX's number.
constexpr Row rows[] = {
    {{}, "undefined"},      {DType::float32},   {DType::uint8},       {DType::int8},          {{}, "uint16"},
    {{}, "int16"},          {DType::int32},     {DType::int64},       {{}, "string"},         {DType::boolean},
    {DType::float16},       {{}, "float64"},    {{}, "uint32"},       {{}, "uint64"},         {{}, "complex64"},
    {{}, "complex128"},     {DType::bfloat16},  {{}, "float8e4m3fn"}, {{}, "float8e4m3fnuz"}, {{}, "float8e5m2"},
    {{}, "float8e5m2fnuz"}, {{}, "uint4"},      {{}, "int4"},         {{}, "float4e2m1"},     {{}, "uint2"},
    {{}, "int2"},           {{}, "float8e8m0"},
};

constexpr int number_of(DType dtype) {
  for (size_t i = 0; i < std::size(rows); ++i) {
    if (rows[i].dtype == dtype) return static_cast<int>(i);
  }
  return 0;
}

const Row* row_of(int number) {
  const auto index = static_cast<size_t>(number);
  return index < std::size(rows) ? &rows[index] : nullptr;
}

}  // namespace

float largest(DType real) {
  if (real == DType::float16) return Float16{0x7bff}.value();
  return real == DType::bfloat16 ? BFloat16{0x7f7f}.value() : std::numeric_limits<float>::max();
}

ElementType::ElementType(DType dtype) : number_(number_of(dtype)) {}

std::optional<DType> ElementType::dtype() const {
  const Row* row = row_of(number_);
  return row == nullptr ? std::nullopt : row->dtype;
}

DType ElementType::known() const {
  if (const auto found = dtype()) return *found;
  throw Error("there are no tensors of type " + name() + " here");
}

std::string ElementType::name() const {
  const Row* row = row_of(number_);
  if (row == nullptr) return "type " + std::to_string(number_);
  return std::string(row->dtype ? dtype_name(*row->dtype) : row->name);
}

}  // namespace softneuro::ort
