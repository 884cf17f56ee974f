#include "layers/weights/constant_data.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/arch.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "kernels/convert/convert.h"

namespace softneuro {
namespace {

// The value of a stored element, whose quantization parameters are those of index `channel`.
template <typename T>
double real_value(T element, const Quantization* q, size_t channel) {
  if constexpr (std::is_same_v<T, QInt8>) {
    const int32_t stored = q->is_signed() ? static_cast<int8_t>(element.bits) : element.bits;
    // Hosts dequantize in float32.
    return static_cast<double>(static_cast<float>(stored - q->zero_points[channel]) * q->scales[channel]);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<double>(element);
  } else {
    return static_cast<double>(element_value(element));
  }
}

// Calls put(index, value) for each element.
template <typename Put>
void for_each_value(const TensorDesc& desc, DType dtype, const void* memory, const Put& put) {
  const Quantization* q = desc.quantization.get();
  const bool per_axis = q != nullptr && q->axis >= 0;
  const int64_t channels = per_axis ? desc.shape[q->axis] : 1;
  const int64_t inner = per_axis ? desc.shape.product(q->axis + 1, desc.shape.rank()) : 1;
  with_dtype(dtype, [&](auto kind) {
    const auto* data = static_cast<const decltype(kind)*>(memory);
    for (int64_t i = 0; i < desc.shape.elements(); ++i) {
      put(i, real_value(data[i], q, per_axis ? static_cast<size_t>(i / inner % channels) : 0));
    }
  });
}

Error class_alone(const Shape& shape) {
  return Error("the values of a weight of shape " + shape.str() + " are asked for where only its class is known", {},
               "whatever check() depends on belongs into ProblemClass, as one of WeightTraits");
}

}  // namespace

ConstantData::ConstantData(const Shape& shape, Values values) : desc_{shape}, memory_(std::move(values)) {}

ConstantData::ConstantData(TensorDesc desc, DType dtype, Memory memory)
    : desc_(std::move(desc)), dtype_(dtype), memory_(std::move(memory)) {
  if (desc_.quantization != nullptr) check_quantization(*desc_.quantization, desc_.shape);
  if (const Refusal refusal = fits(desc_, f32_nchw.with(dtype)); !refusal.accepted()) {
    throw Error("a constant of shape " + shape().str() + ": " + refusal.reason());
  }
}

ConstantData::ConstantData(const Shape& shape, std::function<Values()> make, std::string identity)
    : desc_{shape}, make_(std::move(make)), identity_(std::move(identity)) {}

ConstantData::ConstantData(Constant rows, MakeFactors factors)
    : desc_{rows->shape()}, rows_(std::move(rows)), factors_(std::move(factors)) {}

ConstantData::ConstantData(Constant same, TensorDesc desc) : desc_(std::move(desc)), rows_(std::move(same)) {
  if (elements() != rows_->elements()) {
    throw Error("a constant of shape " + rows_->shape().str() + " has no shape " + shape().str());
  }
}

ConstantData::ConstantData(TensorDesc desc, DType dtype, const WeightTraits& traits, bool at_hand)
    : desc_(std::move(desc)), dtype_(dtype), class_at_hand_(at_hand), traits_(traits) {
  make_ = [shape = desc_.shape]() -> Values { throw class_alone(shape); };
}

const ConstantData::Memory& ConstantData::memory() const {
  if (class_at_hand_) throw class_alone(shape());
  return is_reshaped() ? rows_->memory() : memory_;
}

ConstantData::Values ConstantData::convert() const {
  auto held = std::make_shared<AlignedBuffer>(static_cast<size_t>(elements()) * sizeof(float));
  const ConvertKernel kernel = convert_kernel(available_isas().front(), dtype_, DType::float32);
  if (kernel != nullptr) {
    kernel(memory_.get(), held->f32(), elements());
  } else {
    for_each_value(desc_, dtype_, memory_.get(),
                   [to = held->f32()](int64_t i, double value) { to[i] = static_cast<float>(value); });
  }
  return {held, held->f32()};
}

ConstantData::Values ConstantData::compute() const {
  if (make_) return make_();
  if (rows_ == nullptr) return convert();
  if (is_reshaped()) return rows_->values();
  const std::vector<double> factors = factors_();
  const Values from = rows_->values();
  auto held = std::make_shared<AlignedBuffer>(static_cast<size_t>(elements()) * sizeof(float));
  const int64_t count = shape().product(1, shape().rank());
  for (int64_t row = 0; row < shape()[0]; ++row) {
    const double factor = factors[static_cast<size_t>(row)];
    std::transform(from.get() + row * count, from.get() + (row + 1) * count, held->f32() + row * count,
                   [factor](float value) { return static_cast<float>(value * factor); });
  }
  return {held, held->f32()};
}

ConstantData::Values ConstantData::values() const {
  if (!computed()) return std::static_pointer_cast<const float>(memory_);
  const std::lock_guard lock(mutex_);
  Values values = made_.lock();
  if (values == nullptr) made_ = values = compute();
  return values;
}

std::vector<double> ConstantData::doubles() const {
  std::vector<double> result(static_cast<size_t>(elements()));
  const auto put = [&](int64_t i, double value) { result[static_cast<size_t>(i)] = value; };
  if (is_reshaped()) return rows_->doubles();
  if (memory_ != nullptr) {
    for_each_value(desc_, dtype_, memory_.get(), put);
  } else {
    for_each_value(desc_, DType::float32, values().get(), put);
  }
  return result;
}

bool ConstantData::at_hand() const {
  if (dtype() == DType::float32) return has_rows();
  if (is_reshaped()) return rows_->at_hand();
  return class_at_hand_.value_or(memory_ != nullptr);
}

bool ConstantData::has_rows() const {
  if (rows_ != nullptr) return rows_->has_rows();
  if (class_at_hand_) return *class_at_hand_ && dtype_ == DType::float32;
  return !make_ && dtype_ == DType::float32;
}

std::optional<ConstantData::Rows> ConstantData::rows() const {
  if (!has_rows()) return std::nullopt;
  if (!computed()) return Rows{values(), {}};
  Rows rows = *rows_->rows();
  if (is_reshaped()) return rows;
  const std::vector<double> factors = factors_();
  if (rows.factors.empty()) rows.factors.assign(factors.size(), 1);
  std::transform(factors.begin(), factors.end(), rows.factors.begin(), rows.factors.begin(), std::multiplies<>());
  return rows;
}

std::string ConstantData::find_identity() const {
  if (is_reshaped()) return rows_->identity();
  if (rows_ != nullptr) {
    const std::vector<double> factors = factors_();
    return bytes_hash(factors.data(), factors.size() * sizeof(double)) + rows_->identity();
  }
  if (make_) return bytes_hash(values().get(), static_cast<size_t>(elements()) * sizeof(float));
  std::string found = bytes_hash(memory_.get(), dtype_bytes(dtype_, elements()));
  // Float32 as reals goes without saying.
  if (dtype_ != DType::float32) found += std::string(dtype_name(dtype_)) + desc_.exact();
  return found;
}

const std::string& ConstantData::identity() const {
  {
    const std::lock_guard lock(mutex_);
    if (!identity_.empty()) return identity_;
  }
  std::string found = find_identity();
  const std::lock_guard lock(mutex_);
  if (identity_.empty()) identity_ = std::move(found);
  return identity_;
}

bool ConstantData::identity_known() const {
  if (rows_ != nullptr) return rows_->identity_known();
  const std::lock_guard lock(mutex_);
  return !identity_.empty();
}

const WeightTraits& ConstantData::traits() const {
  {
    const std::lock_guard lock(mutex_);
    if (traits_) return *traits_;
  }
  WeightTraits found;
  if (WeightTraits::matter(shape())) {
    // A factor per row changes no zeros.
    found = rows_ != nullptr ? rows_->traits() : find_traits(shape(), values().get());
  }
  const std::lock_guard lock(mutex_);
  if (!traits_) traits_ = found;
  return *traits_;
}

Constant constant_from(const Shape& shape, std::vector<float> values) {
  if (static_cast<int64_t>(values.size()) != shape.elements()) {
    throw Error("a constant of shape " + shape.str() + " was given " + std::to_string(values.size()) + " values");
  }
  auto held = std::make_shared<const std::vector<float>>(std::move(values));
  return std::make_shared<const ConstantData>(shape, ConstantData::Values(held, held->data()));
}

}  // namespace softneuro
