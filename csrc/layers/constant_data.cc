#include "layers/constant_data.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"

namespace softneuro {

ConstantData::ConstantData(const Shape& shape, Values values) : shape_(shape), values_(std::move(values)) {}

ConstantData::ConstantData(const Shape& shape, std::function<Values()> make) : shape_(shape), make_(std::move(make)) {}

ConstantData::ConstantData(Constant rows, MakeFactors factors)
    : shape_(rows->shape()), rows_(std::move(rows)), factors_(std::move(factors)) {}

ConstantData::Values ConstantData::compute() const {
  if (make_) return make_();
  const std::vector<double> factors = factors_();
  const Values from = rows_->values();
  auto held = std::make_shared<AlignedBuffer>(static_cast<size_t>(elements()) * sizeof(float));
  const int64_t count = shape_.product(1, shape_.rank());
  for (int64_t row = 0; row < shape_[0]; ++row) {
    const double factor = factors[static_cast<size_t>(row)];
    std::transform(from.get() + row * count, from.get() + (row + 1) * count, held->f32() + row * count,
                   [factor](float value) { return static_cast<float>(value * factor); });
  }
  return {held, held->f32()};
}

ConstantData::Values ConstantData::values() const {
  if (!computed()) return values_;
  const std::lock_guard lock(mutex_);
  Values values = made_.lock();
  if (values == nullptr) made_ = values = compute();
  return values;
}

std::optional<ConstantData::Rows> ConstantData::rows() const {
  if (!computed()) return Rows{values_, {}};
  if (!has_rows()) return std::nullopt;
  Rows rows = *rows_->rows();
  const std::vector<double> factors = factors_();
  if (rows.factors.empty()) rows.factors.assign(factors.size(), 1);
  std::transform(factors.begin(), factors.end(), rows.factors.begin(), rows.factors.begin(), std::multiplies<>());
  return rows;
}

const std::string& ConstantData::identity() const {
  {
    const std::lock_guard lock(mutex_);
    if (!identity_.empty()) return identity_;
  }
  std::string found;
  if (rows_ != nullptr) {
    const std::vector<double> factors = factors_();
    found = bytes_hash(factors.data(), factors.size() * sizeof(double)) + rows_->identity();
  } else {
    found = bytes_hash(values().get(), static_cast<size_t>(elements()) * sizeof(float));
  }
  const std::lock_guard lock(mutex_);
  if (identity_.empty()) identity_ = std::move(found);
  return identity_;
}

Constant constant_from(const Shape& shape, std::vector<float> values) {
  if (static_cast<int64_t>(values.size()) != shape.elements()) {
    throw Error("a constant of shape " + shape.str() + " was given " + std::to_string(values.size()) + " values");
  }
  auto held = std::make_shared<const std::vector<float>>(std::move(values));
  return std::make_shared<const ConstantData>(shape, ConstantData::Values(held, held->data()));
}

}  // namespace softneuro
