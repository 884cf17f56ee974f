#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "tune/calibrate/fit_methods.h"

namespace softneuro {
namespace {

constexpr size_t most_limits = 128;

// Values of about the same magnitude.
struct Part {
  double low, high, count;
};

// Magnitudes other than zero, which any grid has. Where bins are so narrow that no grid of interest tells their values
// apart they are merged; how narrow that is follows from the half of the values that is never clipped, not from an
// outlier, beside which all the others would be one part.
std::vector<Part> parts_of(const std::vector<BlobStatistics::Bin>& bins) {
  std::map<uint32_t, double> counts;  // of both signs, whose bins are each other's mirrored
  double total = 0;
  for (const BlobStatistics::Bin& bin : bins) {
    const float magnitude = std::max(std::abs(bin.low), std::abs(bin.high));
    if (magnitude < std::numeric_limits<float>::min()) continue;
    counts[std::bit_cast<uint32_t>(magnitude) >> 16] += static_cast<double>(bin.count);
    total += static_cast<double>(bin.count);
  }
  constexpr double parts_of_half = 1024;
  double before = 0, narrow = 0;
  for (auto it = counts.begin(); it != counts.end() && before < total / 2; ++it) {
    before += it->second;
    narrow = std::bit_cast<float>(it->first << 16) / parts_of_half;
  }
  std::vector<Part> parts;
  for (const auto& [upper, count] : counts) {
    const double low = std::bit_cast<float>(upper << 16), high = std::bit_cast<float>(upper << 16 | 0xffff);
    if (!parts.empty() && high <= parts.back().low + narrow) {
      parts.back().high = high;
      parts.back().count += count;
    } else {
      parts.push_back({parts.empty() && high <= narrow ? 0 : low, high, count});
    }
  }
  return parts;
}

// Kullback-Leibler divergence of the parts, those from `kept` on clipped, from what a grid keeps of them: per level a
// count, which is spread evenly over what is not empty.
class Divergence {
 public:
  Divergence(const std::vector<Part>& parts, size_t levels) : parts_(parts), levels_(levels) {
    for (const Part& part : parts) total_ += part.count;
  }

  double operator()(size_t kept) {
    levels_.assign(levels_.size(), {});
    step_ = parts_[kept - 1].high / static_cast<double>(levels_.size());
    double inside = 0;
    for (size_t i = 0; i < kept; ++i) {
      const Part& part = parts_[i];
      inside += part.count;
      for_levels(part, [&](Level& level, double width) {
        level.count += part.count * (width / (part.high - part.low));
        level.width += width;
      });
    }
    double sum = 0;
    for (size_t i = 0; i < kept; ++i) {
      double spread = 0;
      for_levels(parts_[i], [&](const Level& level, double width) {
        if (level.width > 0) spread += level.count * (width / level.width);
      });
      const double real = (parts_[i].count + (i + 1 == kept ? total_ - inside : 0)) / total_;
      if (spread > 0) sum += real * std::log(real * inside / spread);
    }
    return sum;
  }

 private:
  struct Level {
    double count = 0, width = 0;
  };

  template <typename Fn>
  void for_levels(const Part& part, const Fn& fn) {
    const size_t last = levels_.size() - 1;
    for (size_t level = std::min(last, static_cast<size_t>(part.low / step_)); level <= last; ++level) {
      const double begin = step_ * static_cast<double>(level);
      const double end = level == last ? part.high : begin + step_;
      if (begin >= part.high) break;
      fn(levels_[level], std::max(0.0, std::min(end, part.high) - std::max(begin, part.low)));
    }
  }

  const std::vector<Part>& parts_;
  std::vector<Level> levels_;
  double total_ = 0, step_ = 0;
};

}  // namespace

ValueRange fit_entropy(const BlobStatistics& statistics) {
  const ValueRange all = statistics.range();
  const std::vector<Part> parts = parts_of(statistics.bins());
  if (parts.empty()) return all;
  double total = 0, below = 0;
  for (const Part& part : parts) total += part.count;
  size_t first = 0;  // up to which half of the values lie: clipped below, little would be left to compare
  while (below < total / 2) below += parts[first++].count;
  const bool one_sided = all.least >= 0 || all.most <= 0;
  Divergence divergence(parts, one_sided ? 256 : 128);
  const size_t every = (parts.size() - first) / most_limits + 1;
  double least = std::numeric_limits<double>::infinity(), limit = parts.back().high;
  for (size_t kept = parts.size(); kept >= first; kept -= std::min(kept, every)) {
    const double found = divergence(kept);
    if (found >= least) continue;
    least = found;
    limit = parts[kept - 1].high;
  }
  return {static_cast<float>(std::max(static_cast<double>(all.least), -limit)),
          static_cast<float>(std::min(static_cast<double>(all.most), limit))};
}

}  // namespace softneuro
