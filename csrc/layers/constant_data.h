// Constant weights. Values are produced on demand, so that a folded weight costs no memory until a routine packs it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/shape.h"

namespace softneuro {

class ConstantData;
using Constant = std::shared_ptr<const ConstantData>;

// Row-major float32 values. Immutable; shared between graphs.
class ConstantData {
 public:
  using Values = std::shared_ptr<const float>;
  using MakeFactors = std::function<std::vector<double>()>;

  // Borrows memory that `values` keeps alive.
  ConstantData(const Shape& shape, Values values);
  // Computes the values at each call of values(); `make` must be pure and thread-safe.
  ConstantData(const Shape& shape, std::function<Values()> make);
  // The rows of another, which are its parts along axis 0, each times its own factor; computed at each call of
  // values().
  ConstantData(Constant rows, MakeFactors factors);

  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  // May compute: keep the result for as long as it is needed, no longer. While somebody holds it, others get the same.
  Values values() const;
  // Hash of the values, or of the rows and factors that they come from, computed once: equal for weights that come from
  // equal ones in the same way, wherever they are.
  const std::string& identity() const;

  // The memory that the values come from, without computing them.
  struct Rows {
    Values values;
    std::vector<double> factors;  // one per row, or none
  };
  // Nothing where they are computed otherwise.
  std::optional<Rows> rows() const;
  bool has_rows() const { return !computed() || (rows_ != nullptr && rows_->has_rows()); }

 private:
  bool computed() const { return make_ || rows_ != nullptr; }
  Values compute() const;

  Shape shape_;
  Values values_;
  Constant rows_;
  MakeFactors factors_;
  std::function<Values()> make_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const float> made_;
  mutable std::string identity_;
};

Constant constant_from(const Shape& shape, std::vector<float> values);

}  // namespace softneuro
