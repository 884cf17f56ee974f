// Small tensors of integers or reals, for arithmetic on shapes.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

// Values of either kind; reals are computed in float32, as the host does.
struct Numbers {
  bool real = false;
  std::vector<int64_t> dims;
  std::vector<int64_t> integers;
  std::vector<float> reals;

  size_t size() const { return real ? reals.size() : integers.size(); }
};

inline Numbers numbers(const HostTensor& tensor) {
  Numbers made;
  made.dims = tensor.dims;
  made.real = is_real(tensor.type);
  if (made.real) {
    made.reals = tensor.reals();
  } else {
    made.integers = tensor.integers();
  }
  return made;
}

// Values of the kind that the type has; reals are rounded to it.
inline HostTensor as_type(const Numbers& values, DType type) {
  return with_dtype(type, [&](auto kind) {
    using T = decltype(kind);
    auto kept = std::make_shared<std::vector<T>>();
    for (const float value : values.reals) kept->push_back(element_from<T>(value));
    for (const int64_t value : values.integers) {
      if constexpr (std::is_integral_v<T>) {
        kept->push_back(static_cast<T>(value));
      } else {
        kept->push_back(element_from<T>(static_cast<float>(value)));
      }
    }
    const void* data = kept->data();
    return HostTensor{type, values.dims, std::shared_ptr<const void>(std::move(kept), data)};
  });
}

inline size_t elements(const std::vector<int64_t>& dims) {
  return static_cast<size_t>(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()));
}

// Picks elements by a function from output index to input index.
template <typename Source>
inline Numbers picked(const Numbers& from, std::vector<int64_t> dims, Source source) {
  Numbers made{from.real, std::move(dims), {}, {}};
  for (size_t i = 0, count = elements(made.dims); i < count; ++i) {
    const size_t at = source(i);
    if (from.real) {
      made.reals.push_back(from.reals.at(at));
    } else {
      made.integers.push_back(from.integers.at(at));
    }
  }
  return made;
}

inline Numbers reshaped_to(Numbers values, const Shape& shape) {
  if (static_cast<size_t>(shape.elements()) != values.size()) throw Error("sizes do not agree");
  values.dims.assign(shape.begin(), shape.end());
  return values;
}

inline std::vector<int64_t> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()), 1);
  for (size_t i = 1; i <= out.size(); ++i) {
    const int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1) throw Error("sizes do not broadcast");
    out[out.size() - i] = x == 1 ? y : x;
  }
  return out;
}

inline Numbers expanded(const Numbers& from, const std::vector<int64_t>& dims) {
  return picked(from, dims, [&](size_t index) {
    size_t at = 0, stride = 1;
    for (size_t i = 1; i <= dims.size(); ++i) {
      const auto size = static_cast<size_t>(dims[dims.size() - i]);
      const size_t along = index % size;
      index /= size;
      if (i > from.dims.size()) continue;
      const auto own = static_cast<size_t>(from.dims[from.dims.size() - i]);
      if (own != 1) at += along * stride;
      stride *= own;
    }
    return at;
  });
}

}  // namespace softneuro::ort
