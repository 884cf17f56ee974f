#include "layers/constant_data.h"

#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace softneuro {

ConstantData::ConstantData(const Shape& shape, Values values) : shape_(shape), values_(std::move(values)) {}

ConstantData::ConstantData(const Shape& shape, std::function<Values()> make) : shape_(shape), make_(std::move(make)) {}

ConstantData::Values ConstantData::values() const {
  if (!make_) return values_;
  const std::lock_guard lock(mutex_);
  Values values = made_.lock();
  if (values == nullptr) made_ = values = make_();
  return values;
}

const std::string& ConstantData::identity() const {
  const Values held = values();
  const std::lock_guard lock(mutex_);
  if (identity_.empty()) identity_ = bytes_hash(held.get(), static_cast<size_t>(elements()) * sizeof(float));
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
