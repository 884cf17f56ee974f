#include "runtime/input_ranges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error_measure.h"
#include "base/log.h"

namespace softneuro {
namespace {

// Other data of the same kind goes a little beyond what was observed: that is no news. As a share of the range.
constexpr float slack = 0.1F;
// Values that one look takes, so that it costs little whatever the net: of larger inputs another part each time.
constexpr int64_t most_values = 1 << 18;

// Compares without branches, which vectorises; NaN is outside.
bool all_inside(const float* values, int64_t count, float least, float most) {
  unsigned outside = 0;
  for (int64_t i = 0; i < count; ++i) {
    outside |= static_cast<unsigned>(!(values[i] >= least)) | static_cast<unsigned>(!(values[i] <= most));
  }
  return outside == 0;
}

// How far outside of a range; infinite for what is not finite.
float distance(float value, const Observed& range) {
  if (!std::isfinite(value)) return INFINITY;
  return std::max(range.least - value, value - range.most);
}

bool is_farther(float value, float than, const Observed& range) {
  return distance(value, range) > distance(than, range);
}

std::optional<float> farthest(const float* values, int64_t count, float least, float most, const Observed& range) {
  std::optional<float> found;
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] >= least && values[i] <= most) continue;
    if (!found || is_farther(values[i], *found, range)) found = values[i];
  }
  return found;
}

std::string number(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", static_cast<double>(value));
  return text;
}

}  // namespace

std::optional<uint64_t> OutsideCounts::next_look() {
  const uint64_t call = calls_.fetch_add(1, std::memory_order_relaxed);
  if (call >= first && call % every != 0) return {};
  return looks_.fetch_add(1, std::memory_order_relaxed);
}

void OutsideCounts::note(std::vector<OutsideInput> inputs) {
  bool first_time = false, doubled = false;
  {
    const std::unique_lock lock(mutex_);
    ++outside_;
    first_time = outside_ == 1;
    doubled = std::has_single_bit(static_cast<uint64_t>(outside_));
    for (const OutsideInput& input : inputs) {
      const auto [known, fresh] = inputs_.emplace(input.name, input);
      OutsideInput& own = known->second;
      ++own.calls;
      if (!fresh && is_farther(input.value, own.value, own.range)) own.value = input.value;
    }
  }
  if (first_time) {
    const OutsideInput& input = inputs.front();
    log_warning("region '" + region_ + "': input '" + input.name + "' has " + number(input.value) +
                ", where calibration observed values from " + number(input.range.least) + " to " +
                number(input.range.most) + ": its bytes end there; calibrate again with such data");
  }
  if (doubled && told_) told_(found());
}

OutsideCounts::Found OutsideCounts::found() const {
  Found found;
  found.looked = static_cast<int64_t>(looks_.load(std::memory_order_relaxed));
  const std::shared_lock lock(mutex_);
  found.outside = outside_;
  for (const auto& [name, input] : inputs_) found.inputs.push_back(input);
  return found;
}

std::shared_ptr<const InputRanges> InputRanges::of(const Graph& graph, const Grids* grids, const Net& net,
                                                   std::shared_ptr<OutsideCounts> counts) {
  if (grids == nullptr) return nullptr;
  std::shared_ptr<InputRanges> ranges(new InputRanges(std::move(counts)));
  for (size_t k = 0; k < graph.inputs().size(); ++k) {
    const int blob = graph.inputs()[k];
    const std::optional<Observed> range = grids->observed(blob);
    const Schema& schema = net.input_schemas()[k];
    if (!range || dtype_kind(schema.dtype) != DTypeKind::real) continue;
    // Zero is on every grid.
    const float least = std::min(range->least, 0.0F), most = std::max(range->most, 0.0F);
    const float more = slack * (most - least);
    const int64_t count = graph.blob(blob).desc.shape.elements();
    ranges->items_.push_back({k, schema.dtype, count, least - more, most + more, {graph.blob(blob).name, *range}});
  }
  return ranges->items_.empty() ? nullptr : ranges;
}

void InputRanges::look(std::span<const void* const> inputs) const {
  const std::optional<uint64_t> look = counts_->next_look();
  if (!look) return;
  std::vector<OutsideInput> outside;
  for (const Item& item : items_) {
    const int64_t parts = (item.count + most_values - 1) / most_values;
    const int64_t begin =
        static_cast<int64_t>(*look % static_cast<uint64_t>(std::max<int64_t>(parts, 1))) * most_values;
    const int64_t count = std::min(most_values, item.count - begin);
    std::optional<float> value;
    const auto look_at = [&](const float* values, int64_t many) {
      if (all_inside(values, many, item.least, item.most)) return;
      const auto found = farthest(values, many, item.least, item.most, item.told.range);
      if (found && (!value || is_farther(*found, *value, item.told.range))) value = found;
    };
    if (item.dtype == DType::float32) {
      look_at(static_cast<const float*>(inputs[item.input]) + begin, count);
    } else {
      const Elements elements(item.dtype, inputs[item.input], item.count);
      std::array<double, 256> wide;
      std::array<float, 256> values;
      for (int64_t at = 0; at < count; at += 256) {
        const int64_t many = std::min<int64_t>(256, count - at);
        elements.read(begin + at, many, wide.data());
        std::transform(wide.begin(), wide.begin() + many, values.begin(),
                       [](double x) { return static_cast<float>(x); });
        look_at(values.data(), many);
      }
    }
    if (!value) continue;
    outside.push_back(item.told);
    outside.back().value = *value;
  }
  if (!outside.empty()) counts_->note(std::move(outside));
}

}  // namespace softneuro
