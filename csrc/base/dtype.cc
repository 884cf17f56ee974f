#include "base/dtype.h"

#include <string>

#include "base/error.h"

namespace softneuro {

std::string_view dtype_name(DType dtype) {
  constexpr std::string_view names[] = {
#define SN_DTYPE(name, type, bits, kind) #name,
#include "base/dtypes.inc"
#undef SN_DTYPE
  };
  return dtype == DType::boolean ? "bool" : names[static_cast<size_t>(dtype)];
}

DType parse_dtype(std::string_view name) {
  std::string known;
  for (const DType dtype : all_dtypes()) {
    if (name == dtype_name(dtype)) return dtype;
    known += (known.empty() ? "" : ", ") + std::string(dtype_name(dtype));
  }
  throw Error("unknown dtype '" + std::string(name) + "'", {}, "known: " + known);
}

}  // namespace softneuro
