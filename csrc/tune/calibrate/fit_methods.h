// Methods of fit.h that search.
#pragma once

#include "tune/calibrate/blob_statistics.h"

namespace softneuro {

ValueRange fit_percentile(const BlobStatistics& statistics, double percentile);
ValueRange fit_mse(const BlobStatistics& statistics);
ValueRange fit_entropy(const BlobStatistics& statistics);

}  // namespace softneuro
