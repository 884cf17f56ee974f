// Weights that a prepared routine reads where the model has them.
#pragma once

#include <vector>

#include "layers/constant_data.h"

namespace softneuro {

class HeldRows {
 public:
  HeldRows() = default;
  // Values that are computed otherwise than row by row are computed now and held: only a plan file asks for that.
  explicit HeldRows(const ConstantData& weight) {
    const auto rows = weight.rows();
    values_ = rows ? rows->values : weight.values();
    if (rows) factors_.assign(rows->factors.begin(), rows->factors.end());
  }
  const float* values() const { return values_.get(); }
  // By row; null: 1.
  const float* factors() const { return factors_.empty() ? nullptr : factors_.data(); }

 private:
  ConstantData::Values values_;
  std::vector<float> factors_;
};

}  // namespace softneuro
