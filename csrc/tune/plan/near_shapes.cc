#include "tune/plan/near_shapes.h"

#include <algorithm>
#include <cmath>

namespace softneuro {

std::optional<size_t> nearest_shapes(std::span<const int64_t> wanted, std::span<const Sizes> known) {
  std::optional<size_t> nearest;
  double least = 0;
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].size() != wanted.size()) continue;
    double distance = 0;
    for (size_t j = 0; j < wanted.size(); ++j) {
      const auto a = static_cast<double>(wanted[j]), b = static_cast<double>(known[i][j]);
      distance += std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1.0});
    }
    if (!nearest || distance < least) nearest = i, least = distance;
  }
  return nearest;
}

}  // namespace softneuro
