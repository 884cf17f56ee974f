// From the statistics of a blob's values to the range that eight bits are to cover, and to the grid of that range.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/blob.h"
#include "tune/calibrate/blob_statistics.h"

namespace softneuro {

enum class FitMethod : uint8_t {
  min_max,         // all that was observed
  moving_average,  // of the batches' least and most values
  percentile,      // the narrowest range, zero included, that has a given share of the values
  mse,             // least expected squared error of rounding inside and clipping outside
  entropy,         // least Kullback-Leibler divergence between the values and what eight bits keep of them
  best,            // what errs least at the outputs of some others, blob by blob: see fits_to_try()
};

struct FitSettings {
  FitMethod method = FitMethod::min_max;
  double percentile = 99.99;  // of the values, for FitMethod::percentile

  // "min_max", "percentile", "percentile:99.9". Throws Error that names the known methods.
  static FitSettings parse(std::string_view text);
  // What parse() reads as the same.
  std::string str() const;
  friend bool operator==(const FitSettings&, const FitSettings&) = default;
};

// What FitMethod::best chooses among; of any other method that alone.
std::vector<FitSettings> fits_to_try(const FitSettings& settings);

// Within what was observed. Of `best` the first of those to try. Throws Error if no finite value was.
ValueRange fit(const BlobStatistics& statistics, const FitSettings& settings);

// Unsigned bytes, per tensor. Zero is a point of the grid, for which the range is widened. Its points
// are finite floats, and no value of the range is more than half a step from one; a whole step at an end near FLT_MAX.
// Throws Error for a range that is none.
Quantization grid_of(const ValueRange& range);

}  // namespace softneuro
