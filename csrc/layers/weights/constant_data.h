// Constant weights. Values are produced on demand, so that a folded or converted weight costs no memory until a routine
// packs it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/blob.h"
#include "layers/weights/weight_traits.h"

namespace softneuro {

class ConstantData;
using Constant = std::shared_ptr<const ConstantData>;

// A row-major tensor of any element type. Immutable; shared between graphs.
class ConstantData {
 public:
  using Values = std::shared_ptr<const float>;
  using Memory = std::shared_ptr<const void>;
  using MakeFactors = std::function<std::vector<double>()>;

  // Borrows float32 memory that `values` keeps alive.
  ConstantData(const Shape& shape, Values values);
  // Borrows memory of any type: row-major elements of `dtype`, which has to fit the description. Throws Error.
  ConstantData(TensorDesc desc, DType dtype, Memory memory);
  // Computes float32 values at each call of values(); `make` must be pure and thread-safe. `identity`: if it is known
  // without computing them.
  ConstantData(const Shape& shape, std::function<Values()> make, std::string identity = {});
  // The rows of another, which are its parts along axis 0, each times its own factor; computed at each call of
  // values().
  ConstantData(Constant rows, MakeFactors factors);
  // The elements of another in another shape, which keeps the first two axes where zeros have a pattern.
  ConstantData(Constant same, TensorDesc desc);
  // A weight of which only its class is known: values() throws Error. `at_hand` as below.
  ConstantData(TensorDesc desc, DType dtype, const WeightTraits& traits, bool at_hand);

  const TensorDesc& desc() const { return desc_; }
  const Shape& shape() const { return desc_.shape; }
  int64_t elements() const { return shape().elements(); }
  // The type of the memory that it comes from.
  DType dtype() const { return rows_ != nullptr ? rows_->dtype() : dtype_; }
  // As reals, dequantized if need be. May compute: keep the result for as long as it is needed, no longer. While
  // somebody holds it, others get the same.
  Values values() const;
  // Exactly, for references: integers beyond what a float holds, too.
  std::vector<double> doubles() const;
  // The elements as they are; null where values are computed.
  const Memory& memory() const;
  // Whether routines may read the elements without computing all values: float32 as rows(), other types as memory().
  bool at_hand() const;
  // Hash of what the values come from, computed once: equal for weights that come from equal ones in the same way,
  // wherever they are.
  const std::string& identity() const;
  // Whether it has been computed.
  bool identity_known() const;
  // What is special about the values, found once.
  const WeightTraits& traits() const;

  // The float32 memory that the values come from, without computing them.
  struct Rows {
    Values values;
    std::vector<double> factors;  // one per row, or none
  };
  // Nothing where they are computed otherwise.
  std::optional<Rows> rows() const;
  bool has_rows() const;

 private:
  bool computed() const { return make_ || rows_ != nullptr || dtype_ != DType::float32; }
  bool is_reshaped() const { return rows_ != nullptr && !factors_; }
  Values compute() const;
  Values convert() const;
  std::string find_identity() const;

  TensorDesc desc_;
  DType dtype_ = DType::float32;
  Memory memory_;
  Constant rows_;
  MakeFactors factors_;
  std::function<Values()> make_;
  std::optional<bool> class_at_hand_;  // of a weight of which only its class is known
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const float> made_;
  mutable std::string identity_;
  mutable std::optional<WeightTraits> traits_;
};

Constant constant_from(const Shape& shape, std::vector<float> values);

}  // namespace softneuro
