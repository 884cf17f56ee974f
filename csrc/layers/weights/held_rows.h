// Weights that a prepared routine reads where the model has them.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

#include "layers/weights/constant_data.h"

namespace softneuro {

class HeldRows {
 public:
  HeldRows() = default;
  // Values that are computed otherwise than row by row are computed now and held, which only a plan file asks for; so
  // are those whose factors are beyond float32's range.
  explicit HeldRows(const ConstantData& weight) {
    const auto rows = weight.rows();
    const auto too_large = [](double factor) { return std::isfinite(factor) && std::abs(factor) > FLT_MAX; };
    if (!rows || std::any_of(rows->factors.begin(), rows->factors.end(), too_large)) {
      values_ = weight.values();
      return;
    }
    values_ = rows->values;
    factors_.assign(rows->factors.begin(), rows->factors.end());
  }
  const float* values() const { return values_.get(); }
  // One for each row; null: 1.
  const float* factors() const { return factors_.empty() ? nullptr : factors_.data(); }

 private:
  ConstantData::Values values_;
  std::vector<float> factors_;
};

}  // namespace softneuro
