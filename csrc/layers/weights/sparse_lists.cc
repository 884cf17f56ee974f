#include "layers/weights/sparse_lists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/arch.h"
#include "kernels/epilogue.h"
#include "kernels/integers.h"
#include "layers/weights/sparse_weights.h"

namespace softneuro {
namespace {

// Enough that windows of the input are not fetched again too often, few enough that threads have panels of their own.
constexpr int64_t panel_channels_wanted = 32;
constexpr int64_t most_codes = int64_t{1} << 16;

}  // namespace

int64_t most_chunk(int64_t taps) { return most_codes / std::max<int64_t>(taps, 1); }

Refusal check_sparse(const ConstantData& weight, int64_t taps) {
  if (const Refusal zeros = check_zeros(weight); !zeros.accepted()) return zeros;
  return check_lists(weight, taps);
}

Refusal check_lists(const ConstantData& weight, int64_t taps) {
  if (most_chunk(taps) < 1) return "more taps than codes of 16 bits";
  if (weight.elements() > std::numeric_limits<int32_t>::max()) return "more weights than the lists count";
  return {};
}

SparseLists::SparseLists(const SparseSizes& sizes) : sizes_(sizes) {
  if (sizes.chunk < 1) throw Error("chunk must be positive, not " + std::to_string(sizes.chunk));
  group_panels_ = std::max<int64_t>(ceil_div(sizes.k, panel_channels_wanted), 1);
  panel_ = ceil_div(sizes.k, group_panels_);
  group_panels_ = panel_ == 0 ? 0 : ceil_div(sizes.k, panel_);
  chunks_ = std::max<int64_t>(ceil_div(sizes.c, sizes.chunk), 1);
}

int64_t SparseLists::channels(int64_t chunk) const { return std::min(sizes_.chunk, sizes_.c - first(chunk)); }

int64_t SparseLists::panel_channels(int64_t panel) const {
  return std::min(panel_, sizes_.k - panel % group_panels_ * panel_);
}

Packing SparseLists::packing(const Layer& layer) const {
  const int64_t count = count_nonzeros(*layer.weight("weight")), lists = panels() * chunks_;
  Packing packing;
  packing.add("values", count);
  packing.add("codes", 2 * count, DType::uint8);
  packing.add("starts", lists * (panel_ + 1), DType::int32);
  packing.add("channels", lists * panel_, DType::int32);
  add_bias(packing, layer, sizes_.groups * sizes_.k);
  return packing;
}

void SparseLists::pack(const Layer& layer, Packed& to) const {
  pack_lists(*layer.weight("weight"), to);
  pack_bias(layer, to);
}

void SparseLists::pack_lists(const ConstantData& weight, Packed& to) const {
  const auto held = weight.values();
  auto* value = to.at<float>("values");
  auto* code = reinterpret_cast<uint16_t*>(to.at<uint8_t>("codes"));
  auto* starts = to.at<int32_t>("starts");
  auto* numbers = to.at<int32_t>("channels");
  const int64_t filter = sizes_.c * sizes_.taps, room = to.packing().find("values")->count;
  int32_t at = 0;
  std::vector<int32_t> order, counts;
  for (int64_t panel = 0; panel < panels(); ++panel) {
    const int64_t channel = group(panel) * sizes_.k + panel % group_panels_ * panel_, width = panel_channels(panel);
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const int64_t length = channels(chunk) * sizes_.taps;
      const auto part = [&](int64_t index) {
        return held.get() + (channel + index) * filter + first(chunk) * sizes_.taps;
      };
      counts.assign(static_cast<size_t>(width), 0);
      for (int64_t i = 0; i < width; ++i) {
        counts[static_cast<size_t>(i)] = static_cast<int32_t>(length - std::count(part(i), part(i) + length, 0.0F));
      }
      order.resize(static_cast<size_t>(width));
      std::iota(order.begin(), order.end(), 0);
      // Neighbours are summed together: as long as each other.
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return counts[static_cast<size_t>(a)] > counts[static_cast<size_t>(b)];
      });
      for (int64_t i = 0; i < panel_; ++i) {
        *starts++ = at;
        *numbers++ = i < width ? static_cast<int32_t>(channel) + order[static_cast<size_t>(i)] : 0;
        if (i >= width) continue;
        const float* from = part(order[static_cast<size_t>(i)]);
        for (int64_t j = 0; j < length; ++j) {
          const float next = from[j];
          if (next == 0) continue;
          expect_unchanged(at < room);
          value[at] = next;
          code[at++] = static_cast<uint16_t>(j);
        }
      }
      *starts++ = at;
    }
  }
  expect_unchanged(at == room);
}

SparseRows SparseLists::read(const Packed& packed, int64_t panel, int64_t chunk) const {
  const int64_t list = panel * chunks_ + chunk;
  return {packed.at<float>("values"), reinterpret_cast<const uint16_t*>(packed.at<uint8_t>("codes")),
          packed.at<int32_t>("starts") + list * (panel_ + 1), packed.at<int32_t>("channels") + list * panel_,
          static_cast<int>(panel_channels(panel))};
}

PackedLists::PackedLists(const SparseLists& lists, std::shared_ptr<const Packed> packed)
    : SparseLists(lists), packed_(std::move(packed)) {
  for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
    for (int64_t panel = 0; panel < panels(); ++panel) rows_.push_back(read(*packed_, panel, chunk));
  }
}

bool stores_past_caches(bool tiled, int64_t chunks, const Activation& activation, int64_t bytes) {
  // Some 32 MiB: a third of the time of short sums, a sixth of long ones at twice as much. Where an output stays in a
  // cache, who reads it would pay.
  return tiled && chunks == 1 && is_clamp(activation.kind) && bytes > 16 * l2_bytes();
}

void spread_nonfinite(const SparseRows& rows, uint16_t code, float* to, int64_t dst_channel) {
  for (int i = 0; i < rows.count; ++i) {
    float& value = to[rows.channels[i] * dst_channel];
    const bool in_list = std::binary_search(rows.codes + rows.starts[i], rows.codes + rows.starts[i + 1], code);
    if (!std::isnan(value) && !in_list) value = std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace softneuro
