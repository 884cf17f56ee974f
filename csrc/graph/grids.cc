#include "graph/grids.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "graph/bias_correction.h"
#include "layers/contract/registry.h"

namespace softneuro {
namespace {

// Steps go from -127 to 127: -128 is left out, so that a weight and its negative have the same magnitude.
constexpr float most_step = 127;

float scale_of(const float* row, int64_t count, float steps) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(row[i]));
  const float scale = most / steps;
  return std::isnormal(scale) ? scale : 1.0F;  // of zeros, or of what is as good as zeros
}

bool all_finite(const float* values, int64_t count) {
  return std::all_of(values, values + count, [](float x) { return std::isfinite(x); });
}

Constant to_bytes(const ConstantData& weight) {
  const Shape& shape = weight.shape();
  if (shape.rank() < 2 || shape.elements() == 0 || weight.desc().kind != ValueKind::real) return nullptr;
  const ConstantData::Values values = weight.values();
  const int64_t rows = shape[0], length = shape.elements() / rows;
  if (!all_finite(values.get(), shape.elements())) return nullptr;
  auto quantization = std::make_shared<Quantization>();
  quantization->axis = 0;
  quantization->least = -128;
  quantization->most = 127;
  quantization->zero_points.assign(static_cast<size_t>(rows), 0);
  const std::shared_ptr<int8_t[]> bytes(new int8_t[static_cast<size_t>(shape.elements())]);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = values.get() + row * length;
    const float scale = scale_of(from, length, most_step);
    quantization->scales.push_back(scale);
    for (int64_t i = 0; i < length; ++i) {
      const float steps = std::nearbyintf(from[i] / scale);
      bytes[row * length + i] = static_cast<int8_t>(std::clamp(steps, -most_step, most_step));
    }
  }
  TensorDesc desc{.shape = shape, .quantization = std::move(quantization)};
  return std::make_shared<const ConstantData>(std::move(desc), DType::qint8, ConstantData::Memory(bytes, bytes.get()));
}

// Steps around the middle: of four bits from -7 to 7.
BlockWeights to_blocks(const ConstantData& weight, int bits) {
  const Shape& shape = weight.shape();
  if (shape.rank() != 2 || shape.elements() == 0 || weight.desc().kind != ValueKind::real) return {};
  const ConstantData::Values values = weight.values();
  if (!all_finite(values.get(), shape.elements())) return {};
  const int64_t rows = shape[0], length = shape[1], block = BlockWeights::block;
  const int64_t blocks = (length + block - 1) / block, block_bytes = block * bits / 8;
  const int middle = 1 << (bits - 1);
  const auto most = static_cast<float>(middle - 1);
  const auto count = static_cast<size_t>(rows * blocks * block_bytes);
  const std::shared_ptr<uint8_t[]> bytes(new uint8_t[count]());
  std::vector<float> scales;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t b = 0; b < blocks; ++b) {
      const float* from = values.get() + row * length + b * block;
      const int64_t here = std::min<int64_t>(block, length - b * block);
      const float scale = scale_of(from, here, most);
      scales.push_back(scale);
      uint8_t* to = bytes.get() + (row * blocks + b) * block_bytes;
      for (int64_t i = 0; i < block; ++i) {
        const float steps = i < here ? std::clamp(std::nearbyintf(from[i] / scale), -most, most) : 0.0F;
        const int value = static_cast<int>(steps) + middle;
        to[i * bits / 8] = static_cast<uint8_t>(to[i * bits / 8] | (bits == 8 ? value : value << (i % 2 * 4)));
      }
    }
  }
  const Shape packed{rows, blocks, block_bytes};
  return {std::make_shared<const ConstantData>(desc_of(packed, DType::uint8), DType::uint8,
                                               ConstantData::Memory(bytes, bytes.get())),
          constant_from(Shape{rows, blocks}, std::move(scales))};
}

}  // namespace

Grids::Grids(const Graph& graph, std::vector<Grid> blobs, Learnt learnt)
    : blobs_(std::move(blobs)), learnt_(std::move(learnt)) {
  if (blobs_.size() != graph.blobs().size()) {
    throw Error(
        std::to_string(blobs_.size()) + " grids are not those of " + std::to_string(graph.blobs().size()) + " blobs",
        "grids", "calibrate this model anew");
  }
  for (size_t b = 0; b < blobs_.size(); ++b) {
    const TensorDesc& desc = graph.blobs()[b].desc;
    if (desc.kind != ValueKind::real || desc.quantization != nullptr) blobs_[b] = nullptr;
    if (blobs_[b] == nullptr) continue;
    check_quantization(*blobs_[b], desc.shape);
    // Without shapes: grids hold for all of a model's.
    const TensorDesc grid{.shape = {}, .quantization = blobs_[b]};
    text_ += "grid " + std::to_string(b) + " " + grid.exact() + "\n";
  }
  std::erase_if(learnt_.corrected, [&](const auto& one) {
    if (one.first >= static_cast<int>(graph.layers().size())) return true;
    const Layer& layer = graph.layers()[static_cast<size_t>(one.first)];
    return !has_correctable_bias(layer) || !learnt_.means.contains(layer.inputs[0]);
  });
  for (const auto& [layer, form] : learnt_.corrected) {
    text_ += "corrected " + std::to_string(layer) + " " + form;
    const int input = graph.layers()[static_cast<size_t>(layer)].inputs[0];
    for (const double mean : learnt_.means.at(input)) text_ += " " + exact_number(mean);
    text_ += "\n";
  }
}

std::optional<Observed> Grids::observed(int blob) const {
  if (const auto known = learnt_.inputs.find(blob); known != learnt_.inputs.end()) return known->second;
  const Grid& grid = this->blob(blob);
  if (grid == nullptr) return {};
  const auto value = [&](int step) { return grid->scales[0] * static_cast<float>(step - grid->zero_points[0]); };
  return Observed{value(grid->least), value(grid->most)};
}

Grids::Made& Grids::made_of(const Constant& weight) const {
  if (const auto known = weights_.find(weight); known != weights_.end()) return known->second;
  std::erase_if(weights_, [](const auto& entry) { return entry.first.expired(); });
  return weights_[weight];
}

Constant Grids::bytes_of(const Constant& weight) const {
  const std::unique_lock lock(mutex_);
  auto& made = made_of(weight).bytes;
  if (!made) made = to_bytes(*weight);
  return *made;
}

BlockWeights Grids::blocks_of(const Constant& weight, int bits) const {
  const std::unique_lock lock(mutex_);
  auto& blocks = made_of(weight).blocks;
  const auto known = blocks.find(bits);
  return known != blocks.end() ? known->second : blocks.emplace(bits, to_blocks(*weight, bits)).first->second;
}

std::vector<double> Grids::shift_of(const Layer& layer, std::string_view form) const {
  if (!has_correctable_bias(layer)) return {};
  const auto means = learnt_.means.find(layer.inputs[0]);
  if (means == learnt_.means.end()) return {};
  const Constant& weight = layer.weight("weight");
  const std::pair key{layer.inputs[0], std::string(form)};
  {
    const std::unique_lock lock(mutex_);
    const auto& shifts = made_of(weight).shifts;
    if (const auto known = shifts.find(key); known != shifts.end()) return known->second;
  }
  std::vector<double> shift = softneuro::shift_of(weight, *this, form, means->second);
  const std::unique_lock lock(mutex_);
  return made_of(weight).shifts.emplace(key, std::move(shift)).first->second;
}

TensorDesc stored(const Graph& graph, const Grids* grids, int blob, const Schema& schema) {
  return stored(graph, grids, blob, schema, schema);
}

TensorDesc stored(const Graph& graph, const Grids* grids, int blob, const Schema& from, const Schema& to) {
  TensorDesc desc = graph.blob(blob).desc;
  const auto is_bytes = [](const Schema& schema) { return dtype_kind(schema.dtype) == DTypeKind::quantized; };
  const bool open = grids != nullptr && desc.quantization == nullptr && (is_bytes(from) || is_bytes(to));
  if (open) desc.quantization = grids->blob(blob);
  return desc;
}

void share_grids(const Graph& graph, std::vector<Grids::Grid>& blobs) {
  for (const Layer& layer : graph.layers()) {
    if (layer.type == "constant" || layer.inputs.empty() || !layer.post.empty() || layer.outputs.size() != 1) continue;
    std::vector<TensorDesc> in;
    for (const int input : layer.inputs) {
      in.push_back(graph.blob(input).desc);
      if (in.back().quantization == nullptr) in.back().quantization = blobs[static_cast<size_t>(input)];
    }
    const LayerDef& def = layer_def(layer.type);
    if (def.takes != Takes::moving && def.takes != Takes::selecting) continue;
    const auto same = infer_outputs(def, layer, in).front().quantization;
    if (same != nullptr) blobs[static_cast<size_t>(layer.output())] = same;
  }
}

}  // namespace softneuro
