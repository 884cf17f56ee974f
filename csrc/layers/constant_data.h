// Constant weights. Values are produced on demand, so that a folded weight costs no memory until a routine packs it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/shape.h"

namespace softneuro {

// Row-major float32 values. Immutable; shared between graphs.
class ConstantData {
 public:
  using Values = std::shared_ptr<const float>;

  // Borrows memory that `values` keeps alive.
  ConstantData(const Shape& shape, Values values);
  // Computes the values at each call of values(); `make` must be pure and thread-safe.
  ConstantData(const Shape& shape, std::function<Values()> make);

  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  // May compute: keep the result for as long as it is needed, no longer. While somebody holds it, others get the same.
  Values values() const;
  // Hash of the values, computed once: equal for equal weights, wherever they are.
  const std::string& identity() const;

 private:
  Shape shape_;
  Values values_;
  std::function<Values()> make_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const float> made_;
  mutable std::string identity_;
};

using Constant = std::shared_ptr<const ConstantData>;

Constant constant_from(const Shape& shape, std::vector<float> values);

}  // namespace softneuro
