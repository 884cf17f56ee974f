#include <algorithm>
#include <vector>

#include "tune/calibrate/fit_methods.h"

namespace softneuro {
namespace {

constexpr int mse_steps = 255;
constexpr size_t coarse_candidates = 48;  // on each side
constexpr int most_rounds = 8;

// Number, sum and sum of squares of some magnitudes.
struct Moments {
  double count = 0, sum = 0, squares = 0;
  void operator+=(const Moments& other) {
    count += other.count;
    sum += other.sum;
    squares += other.squares;
  }
};

// Values on one side of zero by their magnitude. A candidate is how many bins are not clipped.
class Side {
 public:
  void add(double low, double high, double count) {
    const double middle = (low + high) / 2, width = high - low;
    highs_.push_back(high);
    bins_.push_back({count, count * middle, count * (middle * middle + width * width / 12)});
  }

  void finish() {
    below_.resize(bins_.size() + 1);
    above_.resize(bins_.size() + 1);
    for (size_t i = 0; i < bins_.size(); ++i) (below_[i + 1] = below_[i]) += bins_[i];
    for (size_t i = bins_.size(); i > 0; --i) (above_[i - 1] = above_[i]) += bins_[i - 1];
  }

  size_t all() const { return bins_.size(); }
  double edge(size_t kept) const { return kept == 0 ? 0 : highs_[kept - 1]; }

  double clipping(size_t kept) const {
    const Moments& m = above_[kept];
    const double limit = edge(kept);
    return std::max(0.0, m.squares - 2 * limit * m.sum + limit * limit * m.count);
  }

  // What is nearer to zero than to the next point of the grid becomes zero, a point by itself: so zeros have no error.
  double rounding(size_t kept, double step) const {
    const auto near = std::upper_bound(highs_.begin(), highs_.end(), step / 2) - highs_.begin();
    const Moments& zeros = below_[std::min(static_cast<size_t>(near), kept)];
    return zeros.squares + (below_[kept].count - zeros.count) * step * step / 12;
  }

  // A few candidates of about equal ratios, of which all values is one.
  std::vector<size_t> candidates() const {
    const size_t every = all() / coarse_candidates + 1;
    std::vector<size_t> kept;
    for (size_t i = 0; i < all(); i += every) kept.push_back(i);
    kept.push_back(all());
    return kept;
  }

 private:
  std::vector<double> highs_;
  std::vector<Moments> bins_, below_, above_;
};

double squared_error(const Side& negative, const Side& positive, size_t low, size_t high) {
  const double step = (negative.edge(low) + positive.edge(high)) / mse_steps;
  return negative.clipping(low) + positive.clipping(high) + negative.rounding(low, step) +
         positive.rounding(high, step);
}

}  // namespace

ValueRange fit_mse(const BlobStatistics& statistics) {
  const ValueRange all = statistics.range();
  const std::vector<BlobStatistics::Bin> bins = statistics.bins();
  Side negative, positive;
  for (const BlobStatistics::Bin& bin : bins) {
    if (bin.low >= 0) positive.add(bin.low, bin.high, static_cast<double>(bin.count));
  }
  for (auto bin = bins.rbegin(); bin != bins.rend(); ++bin) {
    if (bin->low < 0)
      negative.add(-static_cast<double>(bin->high), -static_cast<double>(bin->low), static_cast<double>(bin->count));
  }
  negative.finish();
  positive.finish();
  size_t low = negative.all(), high = positive.all();
  double least = squared_error(negative, positive, low, high);
  const auto attempt = [&](size_t new_low, size_t new_high) {
    const double error = squared_error(negative, positive, new_low, new_high);
    if (error >= least) return;
    least = error;
    low = new_low;
    high = new_high;
  };
  // Both sides share the step. Far apart there may be several minima, so all pairs of a few candidates come first, and
  // then each side in turn by single bins.
  for (const size_t new_low : negative.candidates()) {
    for (const size_t new_high : positive.candidates()) attempt(new_low, new_high);
  }
  for (int round = 0; round < most_rounds; ++round) {
    const double before = least;
    for (size_t new_low = 0; new_low <= negative.all(); ++new_low) attempt(new_low, high);
    for (size_t new_high = 0; new_high <= positive.all(); ++new_high) attempt(low, new_high);
    if (least == before) break;
  }
  return {all.least >= 0 ? all.least : static_cast<float>(0 - negative.edge(low)),
          all.most < 0 ? all.most : static_cast<float>(positive.edge(high))};
}

}  // namespace softneuro
