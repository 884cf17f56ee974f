#include "base/dtype.h"

#include <string>

#include "base/error.h"

namespace softneuro {

std::string_view dtype_name(DType dtype) {
  constexpr std::string_view names[] = {
#define SN_NAME(name, type, bits) #name,
      SN_DTYPES(SN_NAME)
#undef SN_NAME
  };
  return dtype == DType::boolean ? "bool" : names[static_cast<size_t>(dtype)];
}

DType parse_dtype(std::string_view name) {
  std::string known;
#define SN_MATCH(entry, type, bits)                          \
  if (name == dtype_name(DType::entry)) return DType::entry; \
  known += (known.empty() ? "" : ", ") + std::string(dtype_name(DType::entry));
  SN_DTYPES(SN_MATCH)
#undef SN_MATCH
  throw Error("unknown dtype '" + std::string(name) + "'", {}, "known: " + known);
}

}  // namespace softneuro
