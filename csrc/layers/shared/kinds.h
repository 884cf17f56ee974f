// Layers ask this of inputs that are integers or booleans.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "layers/contract/layer.h"

namespace softneuro {

// The type in which nets compute with such integers. Throws Error for those of eight bits.
inline DType integer_type(const TensorDesc& desc) {
  const DType dtype = natural_schema(desc).dtype;
  if (desc.kind == ValueKind::integer && (dtype == DType::int64 || dtype == DType::int32)) return dtype;
  throw Error(desc.str() + " is not of integers of 32 or 64 bits", {}, "convert it first, by the layer `cast`");
}

// Throws Error unless all are reals, all booleans, or all integers of one type.
inline void expect_one_kind(std::span<const TensorDesc> in) {
  for (const TensorDesc& desc : in) {
    if (desc.kind != in[0].kind || (desc.kind == ValueKind::integer && integer_type(desc) != integer_type(in[0]))) {
      throw Error("inputs " + in[0].str() + " and " + desc.str() + " are of different kinds", {},
                  "convert one first, by the layer `cast`");
    }
  }
}

// The attribute `function`, by its name. Throws Error naming the nearest one.
template <typename Function, size_t count>
Function function_of(const Layer& layer, const std::pair<std::string_view, Function> (&functions)[count]) {
  const std::string& name = layer.attrs.text("function");
  std::vector<std::string_view> names;
  for (const auto& [known, function] : functions) {
    if (known == name) return function;
    names.push_back(known);
  }
  throw Error("unknown function '" + name + "'", {}, "did you mean '" + std::string(nearest_name(name, names)) + "'?");
}

}  // namespace softneuro
