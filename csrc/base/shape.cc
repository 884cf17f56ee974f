#include "base/shape.h"

namespace softneuro {

std::string Shape::str() const {
  if (rank_ == 0) return "scalar";
  std::string text;
  for (int64_t dim : *this) {
    if (!text.empty()) text += 'x';
    text += std::to_string(dim);
  }
  return text;
}

}  // namespace softneuro
