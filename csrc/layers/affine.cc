#include "layers/affine.h"

#include <algorithm>

namespace softneuro {

std::shared_ptr<const Packed> pack_affine(const Layer& layer, int64_t size) {
  if (layer.weights.empty()) return nullptr;
  auto packed = std::make_shared<PackedFloats>(2 * size);
  const auto fill = [&](const char* role, float fallback, float* dst) {
    const Constant* weight = layer.find_weight(role);
    if (weight == nullptr) {
      std::fill_n(dst, size, fallback);
    } else {
      std::copy_n((*weight)->values().get(), size, dst);
    }
  };
  fill("weight", 1, packed->data());
  fill("bias", 0, packed->data() + size);
  return packed;
}

}  // namespace softneuro
