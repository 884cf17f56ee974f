#include <algorithm>

#include "layers/embedding/embedding.h"

namespace softneuro {

void embedding_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const std::vector<double> weight = reference_weight(layer, "weight");
  const Shape& shape = layer.weight("weight")->shape();
  const bool from_end = layer.attrs.flag("from_end", false);
  for (int64_t i = 0; i < in[0].shape.elements(); ++i) {
    auto row = static_cast<int64_t>(in[0].data[i]);
    if (from_end && row < 0) row += shape[0];
    if (row < 0 || row >= shape[0]) throw Error("there is no row " + std::to_string(row));
    std::copy_n(weight.data() + row * shape[1], shape[1], out.data + i * shape[1]);
  }
}

}  // namespace softneuro
