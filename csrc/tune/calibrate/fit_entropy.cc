#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "tune/calibrate/fit_methods.h"

namespace softneuro {
namespace {

constexpr int fine = 8;  // bins per level of the grid that are compared
constexpr size_t most_limits = 128;

// How many values have a magnitude up to a limit, where they are spread evenly over each bin.
class Magnitudes {
 public:
  explicit Magnitudes(const std::vector<BlobStatistics::Bin>& bins) {
    // One sign's bins are the other's mirrored, but for how far there are values in the outermost.
    std::map<uint32_t, BlobStatistics::Bin> merged;
    for (const BlobStatistics::Bin& bin : bins) {
      const float low = std::min(std::abs(bin.low), std::abs(bin.high));
      const float high = std::max(std::abs(bin.low), std::abs(bin.high));
      if (high < std::numeric_limits<float>::min()) continue;  // any grid has zero
      auto& own =
          merged.try_emplace(std::bit_cast<uint32_t>(high) >> 16, BlobStatistics::Bin{low, high, 0}).first->second;
      own = {std::min(own.low, low), std::max(own.high, high), own.count + bin.count};
    }
    for (const auto& [upper, bin] : merged) {
      bins_.push_back({bin.low, bin.high, total_});
      total_ += static_cast<double>(bin.count);
    }
  }

  size_t size() const { return bins_.size(); }
  double total() const { return total_; }
  double limit(size_t i) const { return bins_[i].high; }
  double up_to(size_t i) const { return i + 1 < bins_.size() ? bins_[i + 1].before : total_; }

  // Counts of `counts.size()` equal parts of [0, limit(last)].
  void split(size_t last, std::vector<double>& counts) const {
    const auto parts = static_cast<double>(counts.size());
    double before = 0;
    size_t i = 0;
    for (size_t part = 0; part < counts.size(); ++part) {
      const bool end = part + 1 == counts.size();
      const double edge = limit(last) * (static_cast<double>(part + 1) / parts);
      while (i < last && bins_[i].high <= edge) ++i;
      const Spread& bin = bins_[i];
      const double share = end || edge >= bin.high ? 1 : edge <= bin.low ? 0 : (edge - bin.low) / (bin.high - bin.low);
      const double now = bin.before + share * (up_to(i) - bin.before);
      counts[part] = now - before;
      before = now;
    }
  }

 private:
  struct Spread {
    double low, high, before;
  };
  std::vector<Spread> bins_;
  double total_ = 0;
};

// Of the values, clipped, from levels that spread their counts evenly over what is not empty.
double divergence(const std::vector<double>& counts, double inside, double total) {
  double sum = 0;
  for (size_t level = 0; level < counts.size(); level += fine) {
    double count = 0;
    int parts = 0;
    for (size_t i = level; i < level + fine; ++i) {
      count += counts[i];
      parts += counts[i] > 0 ? 1 : 0;
    }
    if (parts == 0) continue;
    const double kept = count / parts / inside;
    for (size_t i = level; i < level + fine; ++i) {
      const double clipped = i + 1 == counts.size() ? total - inside : 0;
      const double real = (counts[i] + clipped) / total;
      if (counts[i] > 0) sum += real * std::log(real / kept);
    }
  }
  return sum;
}

}  // namespace

ValueRange fit_entropy(const BlobStatistics& statistics) {
  const ValueRange all = statistics.range();
  const Magnitudes magnitudes(statistics.bins());
  if (magnitudes.size() == 0) return all;
  const bool one_sided = all.least >= 0 || all.most <= 0;
  std::vector<double> counts(static_cast<size_t>((one_sided ? 256 : 128) * fine));
  // Half of the values are never clipped: that spares limits at which nothing is left to compare.
  size_t first = 0;
  while (magnitudes.up_to(first) < magnitudes.total() / 2) ++first;
  const size_t every = (magnitudes.size() - first) / most_limits + 1;
  double least = std::numeric_limits<double>::infinity(), limit = magnitudes.limit(magnitudes.size() - 1);
  for (size_t back = 0; back < magnitudes.size() - first; back += every) {
    const size_t last = magnitudes.size() - 1 - back;
    magnitudes.split(last, counts);
    const double found = divergence(counts, magnitudes.up_to(last), magnitudes.total());
    if (found < least) {
      least = found;
      limit = magnitudes.limit(last);
    }
  }
  return {static_cast<float>(std::max(static_cast<double>(all.least), -limit)),
          static_cast<float>(std::min(static_cast<double>(all.most), limit))};
}

}  // namespace softneuro
