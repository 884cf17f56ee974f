#include "tune/calibrate/blob_statistics.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace softneuro {
namespace {

constexpr uint32_t sign = 0x80000000u, exponent = 0x7f800000u, mantissa = 0x007fffffu;
constexpr int page_bits = 24, bin_bits = 16;  // bits of an order below the page's number, and the bin's
constexpr double momentum = 0.9;

// Finite values as unsigned integers of the same order. Signs are as good as random, so nothing branches by them.
uint32_t order_of(uint32_t bits) {
  if (bits == sign) return sign;  // -0 is 0
  return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | sign);
}

float value_of(uint32_t order) { return std::bit_cast<float>((order & sign) != 0 ? order & ~sign : ~order); }

}  // namespace

BlobStatistics::Page& BlobStatistics::page(uint32_t number) {
  if (pages_[number] == nullptr) pages_[number] = std::make_unique<Page>(Page{});
  return *pages_[number];
}

void BlobStatistics::observe(std::span<const float> values) {
  uint32_t least = std::numeric_limits<uint32_t>::max(), most = 0;
  int64_t nans = 0, infinities = 0;
  for (const float value : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & exponent) == exponent) {
      ++((bits & mantissa) != 0 ? nans : infinities);
      continue;
    }
    const uint32_t order = order_of(bits);
    least = std::min(least, order);
    most = std::max(most, order);
    ++page(order >> page_bits)[order >> bin_bits & 255];
  }
  nans_ += nans;
  infinities_ += infinities;
  const int64_t finite = static_cast<int64_t>(values.size()) - nans - infinities;
  if (finite == 0) return;
  const ValueRange batch{value_of(least), value_of(most)};
  const double old = batches_ == 0 ? 0 : momentum;
  average_least_ = old * average_least_ + (1 - old) * static_cast<double>(batch.least);
  average_most_ = old * average_most_ + (1 - old) * static_cast<double>(batch.most);
  range_ = count_ == 0 ? batch : ValueRange{std::min(range_.least, batch.least), std::max(range_.most, batch.most)};
  count_ += finite;
  ++batches_;
}

void BlobStatistics::merge(const BlobStatistics& other) {
  nans_ += other.nans_;
  infinities_ += other.infinities_;
  if (other.count_ == 0) return;
  for (uint32_t number = 0; number < pages_.size(); ++number) {
    if (other.pages_[number] == nullptr) continue;
    Page& own = page(number);
    for (size_t i = 0; i < own.size(); ++i) own[i] += (*other.pages_[number])[i];
  }
  const double share = static_cast<double>(other.batches_) / static_cast<double>(batches_ + other.batches_);
  average_least_ += share * (other.average_least_ - average_least_);
  average_most_ += share * (other.average_most_ - average_most_);
  range_ = count_ == 0
               ? other.range_
               : ValueRange{std::min(range_.least, other.range_.least), std::max(range_.most, other.range_.most)};
  count_ += other.count_;
  batches_ += other.batches_;
}

void BlobStatistics::check_any() const {
  if (count_ > 0) return;
  throw Error(nonfinite() > 0
                  ? "no finite values were observed: all " + std::to_string(nonfinite()) + " are NaN or infinite"
                  : "no values were observed",
              "calibration", "run at least one batch with finite values");
}

ValueRange BlobStatistics::range() const {
  check_any();
  return range_;
}

ValueRange BlobStatistics::average() const {
  check_any();
  return {static_cast<float>(average_least_), static_cast<float>(average_most_)};
}

std::vector<BlobStatistics::Bin> BlobStatistics::bins() const {
  std::vector<Bin> bins;
  for (uint32_t number = 0; number < pages_.size(); ++number) {
    if (pages_[number] == nullptr) continue;
    for (uint32_t i = 0; i < 256; ++i) {
      const uint64_t count = (*pages_[number])[i];
      if (count == 0) continue;
      const uint32_t first = number << page_bits | i << bin_bits;
      const float low = value_of(first), high = value_of(first | ((1u << bin_bits) - 1));
      bins.push_back({std::max(low, range_.least), std::min(high, range_.most), count});
    }
  }
  return bins;
}

}  // namespace softneuro
