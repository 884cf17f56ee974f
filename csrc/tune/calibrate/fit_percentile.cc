#include <algorithm>
#include <cmath>
#include <limits>

#include "tune/calibrate/fit_methods.h"

namespace softneuro {

// Of all windows of bins with enough values, the one whose grid has the smallest steps. So tails are cut where they are
// long: one side only after an activation that leaves the other short, or none.
ValueRange fit_percentile(const BlobStatistics& statistics, double percentile) {
  const ValueRange all = statistics.range();
  const std::vector<BlobStatistics::Bin> bins = statistics.bins();
  const auto total = static_cast<double>(statistics.count());
  constexpr double rounding = 1e-6;  // 100 - 99.9 is less than a tenth
  const double enough = total - std::floor(total * (100 - percentile) / 100 + rounding);
  ValueRange best = all;
  double least_width = std::numeric_limits<double>::infinity(), inside = 0;
  size_t end = 0;
  for (const BlobStatistics::Bin& first : bins) {
    while (inside < enough && end < bins.size()) inside += static_cast<double>(bins[end++].count);
    if (inside < enough) break;
    // What lies between zero and the window costs no width.
    const float low = first.low > 0 ? std::max(all.least, 0.0f) : first.low;
    const float high = bins[end - 1].high < 0 ? std::min(all.most, 0.0f) : bins[end - 1].high;
    const double width = std::max(0.0, static_cast<double>(high)) - std::min(0.0, static_cast<double>(low));
    if (width < least_width) {
      least_width = width;
      best = {low, high};
    }
    inside -= static_cast<double>(first.count);
  }
  return best;
}

}  // namespace softneuro
