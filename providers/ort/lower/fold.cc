#include "providers/ort/lower/fold.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "providers/ort/lower/fold_indices.h"
#include "providers/ort/lower/lowering.h"
#include "providers/ort/lower/numbers.h"
#include "providers/ort/lower/shape_rules.h"

namespace softneuro::ort {
namespace {

void put(Lowering& low, const Numbers& values, DType type) { low.set(as_type(values, type)); }

template <typename T>
T arithmetic(const std::string& op, T x, T y) {
  if (op == "Add") return x + y;
  if (op == "Sub") return x - y;
  if (op == "Mul") return x * y;
  if (op == "Min") return std::min(x, y);
  if (op == "Max") return std::max(x, y);
  if constexpr (std::is_integral_v<T>) {
    if (y == 0 || (y == -1 && x == std::numeric_limits<T>::min())) throw Error("a size is divided by zero");
  }
  return x / y;
}

void fold_arithmetic(Lowering& low) {
  const std::string& op = low.node().op;
  Numbers total = numbers(low.known(0));
  for (size_t i = 1; i < low.node().inputs.size(); ++i) {
    Numbers other = numbers(low.known(i));
    if (total.real != other.real) throw Error("operands differ in type");
    const auto dims = broadcast(total.dims, other.dims);
    total = expanded(total, dims), other = expanded(other, dims);
    for (size_t k = 0; k < total.reals.size(); ++k) total.reals[k] = arithmetic(op, total.reals[k], other.reals[k]);
    for (size_t k = 0; k < total.integers.size(); ++k) {
      total.integers[k] = arithmetic(op, total.integers[k], other.integers[k]);
    }
  }
  put(low, total, low.known(0).type);
}

template <typename T>
bool holds(const std::string& op, T x, T y) {
  if (op == "Equal") return x == y;
  if (op == "Less") return x < y;
  if (op == "LessOrEqual") return x <= y;
  if (op == "Greater") return x > y;
  if (op == "GreaterOrEqual") return x >= y;
  if (op == "And") return x != 0 && y != 0;
  if (op == "Or") return x != 0 || y != 0;
  return (x != 0) != (y != 0);  // Xor
}

void fold_truth(Lowering& low) {
  const std::string& op = low.node().op;
  const Numbers a = numbers(low.known(0)), b = numbers(low.known(1));
  const auto dims = broadcast(a.dims, b.dims);
  const Numbers x = expanded(a, dims), y = expanded(b, dims);
  Numbers made{false, dims, {}, {}};
  for (size_t i = 0; i < elements(dims); ++i) {
    made.integers.push_back(x.real ? holds(op, x.reals[i], y.reals.at(i)) : holds(op, x.integers[i], y.integers.at(i)));
  }
  put(low, made, DType::boolean);
}

void fold_not(Lowering& low) {
  Numbers values = numbers(low.known(0));
  for (int64_t& value : values.integers) value = value == 0 ? 1 : 0;
  put(low, values, DType::boolean);
}

void fold_where(Lowering& low) {
  const Numbers c = numbers(low.known(0)), a = numbers(low.known(1)), b = numbers(low.known(2));
  const auto dims = broadcast(broadcast(c.dims, a.dims), b.dims);
  const Numbers condition = expanded(c, dims), other = expanded(b, dims);
  Numbers made = expanded(a, dims);
  for (size_t i = 0; i < elements(dims); ++i) {
    if (condition.integers.at(i) != 0) continue;
    if (made.real) {
      made.reals[i] = other.reals.at(i);
    } else {
      made.integers[i] = other.integers.at(i);
    }
  }
  put(low, made, low.known(1).type);
}

void fold_shape(Lowering& low) {
  const Shape in = low.shape(0);
  if (low.node().op == "Size") return low.set(tensor_of({}, std::vector<int64_t>{in.elements()}));
  const auto bound = [&](std::string_view name, int64_t fallback) {
    const int64_t given = low.node().integer(name, fallback);
    return std::clamp<int64_t>(given < 0 ? given + in.rank() : given, 0, in.rank());
  };
  std::vector<int64_t> sizes;
  for (int64_t i = bound("start", 0); i < bound("end", in.rank()); ++i) sizes.push_back(in[static_cast<int>(i)]);
  const auto count = static_cast<int64_t>(sizes.size());
  low.set(tensor_of({count}, sizes));
}

void fold_concat(Lowering& low) {
  const auto axis = static_cast<size_t>(low.axis(low.node().integer("axis", 0), low.rank(0)));
  std::vector<Numbers> parts;
  for (size_t i = 0; i < low.node().inputs.size(); ++i) parts.push_back(numbers(low.known(i)));
  Numbers made{parts[0].real, parts[0].dims, {}, {}};
  made.dims[axis] = 0;
  for (const Numbers& part : parts) {
    std::vector<int64_t> rest = part.dims;
    if (rest.size() != made.dims.size()) throw Error("what is joined differs in rank");
    rest[axis] = made.dims[axis];
    if (part.real != made.real || rest != made.dims) throw Error("what is joined differs in type or size");
    made.dims[axis] += part.dims[axis];
  }
  const auto append = [&](auto& to, const auto& from, size_t row, size_t size) {
    const auto begin = from.begin() + static_cast<ptrdiff_t>(row * size);
    to.insert(to.end(), begin, begin + static_cast<ptrdiff_t>(size));
  };
  const size_t rows = elements({made.dims.begin(), made.dims.begin() + static_cast<ptrdiff_t>(axis)});
  for (size_t row = 0; row < rows; ++row) {
    for (const Numbers& part : parts) {
      const size_t size = elements({part.dims.begin() + static_cast<ptrdiff_t>(axis), part.dims.end()});
      if (part.real) {
        append(made.reals, part.reals, row, size);
      } else {
        append(made.integers, part.integers, row, size);
      }
    }
  }
  put(low, made, low.known(0).type);
}

void fold_cumsum(Lowering& low) {
  Numbers sums = numbers(low.known(0));
  const bool plain = low.node().integer("exclusive", 0) == 0 && low.node().integer("reverse", 0) == 0;
  if (!plain || sums.real) throw Error("only plain sums of integers are known ahead");
  const auto axis = static_cast<size_t>(low.axis(low.known(1).integers().at(0), low.rank(0)));
  const size_t inner = elements({sums.dims.begin() + static_cast<ptrdiff_t>(axis) + 1, sums.dims.end()});
  for (size_t i = inner; i < sums.integers.size(); ++i) {
    if (i / inner % static_cast<size_t>(sums.dims[axis]) != 0) sums.integers[i] += sums.integers[i - inner];
  }
  put(low, sums, low.known(0).type);
}

void fold_slice(Lowering& low) {
  Numbers values = numbers(low.known(0));
  for (const SliceRange& range : slice_ranges(low)) {
    const auto axis = static_cast<size_t>(range.axis);
    const std::vector<int64_t> rest(values.dims.begin() + static_cast<ptrdiff_t>(axis) + 1, values.dims.end());
    const size_t inner = elements(rest), size = static_cast<size_t>(values.dims[axis]);
    const int64_t span = range.step > 0 ? range.end - range.start : range.start - range.end;
    const int64_t stride = std::abs(range.step), count = span <= 0 ? 0 : (span - 1) / stride + 1;
    std::vector<int64_t> dims = values.dims;
    dims[axis] = count;
    values = picked(values, dims, [&](size_t i) {
      const auto along = static_cast<int64_t>(i / inner) % count;
      const size_t outer = i / inner / static_cast<size_t>(count);
      return (outer * size + static_cast<size_t>(range.start + along * range.step)) * inner + i % inner;
    });
  }
  put(low, values, low.known(0).type);
}

void fold_cast(Lowering& low) {
  const DType type = ElementType(static_cast<int>(low.node().integer("to", 0))).known();
  Numbers values = numbers(low.known(0));
  const bool real = is_real(type);
  if (real && !values.real) {
    for (const int64_t value : values.integers) values.reals.push_back(static_cast<float>(value));
    values.integers.clear();
  } else if (!real && values.real) {
    for (const float value : values.reals) {
      if (!(std::abs(value) < 9e18F)) throw Error("a size is not finite");
      // Everything but zero is true, one half too.
      values.integers.push_back(type == DType::boolean ? value != 0 : static_cast<int64_t>(value));
    }
    values.reals.clear();
  }
  values.real = real;
  if (type == DType::boolean) {
    for (int64_t& value : values.integers) value = value != 0;
  }
  put(low, values, type);
}

void fold_unary(Lowering& low) {
  Numbers values = numbers(low.known(0));
  const std::string& op = low.node().op;
  for (float& value : values.reals) {
    value = op == "Neg"     ? -value
            : op == "Floor" ? std::floor(value)
            : op == "Ceil"  ? std::ceil(value)
            : op == "Cos"   ? std::cos(value)
                            : std::sin(value);
  }
  if (op == "Neg") {
    for (int64_t& value : values.integers) value = -value;
  }
  put(low, values, low.known(0).type);
}

void fold_constant_of_shape(Lowering& low) {
  const OpAttribute* value = low.node().find("value");
  const HostTensor fill = value == nullptr ? tensor_of({1}, std::vector<float>{0}) : std::get<HostTensor>(*value);
  const auto dims = low.known(0).integers();
  if (elements(dims) > (size_t{1} << 24)) throw Error("it makes " + std::to_string(elements(dims)) + " elements");
  put(low, picked(numbers(fill), dims, [](size_t) { return size_t{0}; }), fill.type);
}

void fold_range(Lowering& low) {
  const auto start = low.known(0).integers().at(0), limit = low.known(1).integers().at(0),
             step = low.known(2).integers().at(0);
  if (step == 0) throw Error("its step is zero");
  Numbers made;
  const int64_t count = std::max<int64_t>((limit - start + step - (step > 0 ? 1 : -1)) / step, 0);
  if (count > (int64_t{1} << 20)) throw Error("it makes " + std::to_string(count) + " elements");
  for (int64_t i = 0; i < count; ++i) made.integers.push_back(start + i * step);
  made.dims = {count};
  put(low, made, low.known(0).type);
}

void fold_product(Lowering& low) {
  Numbers values = numbers(low.known(0));
  if (values.dims.size() > 1 || values.real) throw Error("only lists of sizes are multiplied ahead");
  const bool keep = low.node().integer("keepdims", 1) != 0;
  const int64_t product =
      std::accumulate(values.integers.begin(), values.integers.end(), int64_t{1}, std::multiplies<>());
  put(low, {false, keep ? std::vector<int64_t>{1} : std::vector<int64_t>{}, {product}, {}}, low.known(0).type);
}

void fold_sum(Lowering& low) {
  const Numbers values = numbers(low.known(0));
  const auto rank = static_cast<int>(values.dims.size());
  std::vector<bool> summed(values.dims.size(), false);
  const std::vector<int64_t> axes = low.integers(1, "axes");
  for (const int64_t axis : axes) summed[static_cast<size_t>(low.axis(axis, rank))] = true;
  if (axes.empty() && low.node().integer("noop_with_empty_axes", 0) == 0) summed.flip();
  std::vector<int64_t> wide, kept;  // with axes of one, and as asked for
  for (size_t axis = 0; axis < summed.size(); ++axis) {
    wide.push_back(summed[axis] ? 1 : values.dims[axis]);
    if (!summed[axis] || low.node().integer("keepdims", 1) != 0) kept.push_back(wide.back());
  }
  Numbers places{false, wide, std::vector<int64_t>(elements(wide)), {}};
  std::iota(places.integers.begin(), places.integers.end(), int64_t{0});
  places = expanded(places, values.dims);  // where each value goes
  std::vector<double> reals(elements(wide));
  Numbers made{values.real, kept, std::vector<int64_t>(values.real ? 0 : elements(wide)), {}};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<size_t>(places.integers[i]);
    if (values.real) reals[at] += static_cast<double>(values.reals[i]);
    if (!values.real) made.integers[at] += values.integers[i];
  }
  if (values.real) made.reals.assign(reals.begin(), reals.end());
  put(low, made, low.known(0).type);
}

void fold_reshape(Lowering& low) {
  const std::string& op = low.node().op;
  const Shape in = low.shape(0);
  const Shape out = op == "Reshape"     ? reshaped(low.node(), in, low.known(1).integers())
                    : op == "Squeeze"   ? squeezed(in, low.integers(1, "axes"))
                    : op == "Unsqueeze" ? unsqueezed(in, low.integers(1, "axes"))
                                        : in;
  put(low, reshaped_to(numbers(low.known(0)), out), low.known(0).type);
}

void fold_expand(Lowering& low) {
  const Numbers values = numbers(low.known(0));
  put(low, expanded(values, broadcast(values.dims, low.known(1).integers())), low.known(0).type);
}

using Fold = void (*)(Lowering&);
const std::map<std::string, Fold, std::less<>>& folds() {
  static const std::map<std::string, Fold, std::less<>> table{{"Shape", fold_shape},
                                                              {"Size", fold_shape},
                                                              {"Gather", fold_gather},
                                                              {"Concat", fold_concat},
                                                              {"Slice", fold_slice},
                                                              {"Cast", fold_cast},
                                                              {"Add", fold_arithmetic},
                                                              {"Sub", fold_arithmetic},
                                                              {"Mul", fold_arithmetic},
                                                              {"Div", fold_arithmetic},
                                                              {"Min", fold_arithmetic},
                                                              {"Max", fold_arithmetic},
                                                              {"Equal", fold_truth},
                                                              {"Less", fold_truth},
                                                              {"LessOrEqual", fold_truth},
                                                              {"Greater", fold_truth},
                                                              {"GreaterOrEqual", fold_truth},
                                                              {"And", fold_truth},
                                                              {"Or", fold_truth},
                                                              {"Xor", fold_truth},
                                                              {"Not", fold_not},
                                                              {"Where", fold_where},
                                                              {"Neg", fold_unary},
                                                              {"Floor", fold_unary},
                                                              {"Ceil", fold_unary},
                                                              {"Cos", fold_unary},
                                                              {"Sin", fold_unary},
                                                              {"GatherElements", fold_gather_elements},
                                                              {"GatherND", fold_gather_nd},
                                                              {"CumSum", fold_cumsum},
                                                              {"Range", fold_range},
                                                              {"ReduceProd", fold_product},
                                                              {"ReduceSum", fold_sum},
                                                              {"Transpose", fold_transpose},
                                                              {"Reshape", fold_reshape},
                                                              {"Squeeze", fold_reshape},
                                                              {"Unsqueeze", fold_reshape},
                                                              {"Identity", fold_reshape},
                                                              {"Expand", fold_expand},
                                                              {"ConstantOfShape", fold_constant_of_shape}};
  return table;
}

}  // namespace

bool can_fold(const HostNode& node) { return node.domain.empty() && folds().contains(node.op); }

bool reads_shape_only(const HostNode& node) { return node.domain.empty() && (node.op == "Shape" || node.op == "Size"); }

bool fold(Lowering& low) {
  const HostNode& node = low.node();
  if (!can_fold(node)) return false;
  if (!reads_shape_only(node)) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (low.has(i) && !low.is_known(i)) return false;
    }
  }
  folds().find(node.op)->second(low);
  return true;
}

}  // namespace softneuro::ort
