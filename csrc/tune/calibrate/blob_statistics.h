// What calibration keeps of a blob's values: enough to choose a range by any method (see fit.h), however many there
// are.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace softneuro {

// From the least value to the most, both of them included.
struct ValueRange {
  float least = 0, most = 0;
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

// Values are counted by the upper half of their bits: sign, exponent and seven digits after the point, so that bins are
// narrower than a hundredth of what is in them. Unlike bins of one width they need no range ahead and are never merged:
// after an outlier of 1e30 values of 1, or of 1e-30, are told apart as well as before. Any split into batches, and any
// order, gives the same counts. Pages of bins are made when a value falls in: usual blobs have some 30 of them, 60 KB.
class BlobStatistics {
 public:
  // Values that share a bin, and where in it there may be some: never across zero, nor beyond the least or most.
  struct Bin {
    float low, high;
    uint64_t count;
  };

  // One batch. NaN and infinities are counted, and left out otherwise.
  void observe(std::span<const float> values);
  // As if the other's batches had been observed, but for moving averages: each side's counts by its number of batches.
  void merge(const BlobStatistics& other);

  int64_t count() const { return count_; }      // finite values
  int64_t batches() const { return batches_; }  // with a finite value
  int64_t nans() const { return nans_; }
  int64_t infinities() const { return infinities_; }
  int64_t nonfinite() const { return nans_ + infinities_; }
  // Zeros have no sign here. Both throw Error if there is no finite value.
  ValueRange range() const;
  // Moving averages of the batches' least and most values: each new one counts for a tenth.
  ValueRange average() const;
  // Those that are not empty, in ascending order.
  std::vector<Bin> bins() const;

 private:
  using Page = std::array<uint64_t, 256>;

  void check_any() const;
  Page& page(uint32_t number);

  std::array<std::unique_ptr<Page>, 256> pages_;
  int64_t count_ = 0, batches_ = 0, nans_ = 0, infinities_ = 0;
  ValueRange range_;
  double average_least_ = 0, average_most_ = 0;
};

}  // namespace softneuro
