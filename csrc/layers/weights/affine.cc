#include "layers/weights/affine.h"

#include <algorithm>

namespace softneuro {

Packing affine_packing(const Layer& layer, int64_t size) {
  Packing packing;
  if (layer.weights.empty()) return packing;
  for (const char* role : {"weight", "bias"}) add_padded(packing, role, layer.find_weight(role), size);
  return packing;
}

void pack_affine(const Layer& layer, Packed& to) {
  pack_padded(layer.find_weight("bias"), to, "bias");
  if (const Constant* weight = layer.find_weight("weight")) {
    pack_padded(weight, to, "weight");
  } else {
    std::fill_n(to.at<float>("weight"), to.packing().find("weight")->count, 1.0f);
  }
}

}  // namespace softneuro
