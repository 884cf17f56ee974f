#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "providers/ort/size_rules.h"

namespace softneuro::ort {
namespace {

using Op = SizeTerm::Op;
using Terms = SizeRules::Terms;

void same(SizeRules& r) { r.set(r.dims(0)); }

void identity(SizeRules& r) {
  if (r.has_integers(0) && r.node().op != "Cast") return r.set_integers(r.integers(0), r.dims(0).size() == 1);
  const int64_t to = r.node().integer("to", 0);
  if (r.has_integers(0) && (to == 6 || to == 7))
    return r.set_integers(r.integers(0), r.dims(0).size() == 1);  // integers
  same(r);
}

void elementwise(SizeRules& r) {
  Terms dims = r.dims(0);
  for (size_t i = 1; i < r.inputs(); ++i) dims = r.broadcast(dims, r.dims(i));
  r.set(std::move(dims));
}

template <Op op>
void arithmetic(SizeRules& r) {
  if (r.inputs() != 2 || !r.has_integers(0) || !r.has_integers(1)) return elementwise(r);
  const Terms &a = r.integers(0), &b = r.integers(1);
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) leave_open("its operands differ");
  Terms made;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    made.push_back(r.term(op, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]));
  }
  r.set_integers(std::move(made), r.dims(0).size() + r.dims(1).size() > 0);
}

void matmul(SizeRules& r) {
  const Terms &a = r.dims(0), &b = r.dims(1);
  if (a.size() < 2 || b.size() < 2) leave_open("an operand is a list");
  Terms dims = r.broadcast(Terms(a.begin(), a.end() - 2), Terms(b.begin(), b.end() - 2));
  dims.push_back(a[a.size() - 2]);
  dims.push_back(b.back());
  r.set(std::move(dims));
}

void gemm(SizeRules& r) {
  const Terms &a = r.dims(0), &b = r.dims(1);
  if (a.size() != 2 || b.size() != 2) leave_open("an operand is no matrix");
  r.set({a[r.node().integer("transA", 0) != 0 ? 1 : 0], b[r.node().integer("transB", 0) != 0 ? 0 : 1]});
}

void transpose(SizeRules& r) {
  const Terms& in = r.dims(0);
  Terms dims;
  const auto order = r.node().integers("perm");
  if (order.empty()) {
    dims.assign(in.rbegin(), in.rend());
  } else {
    if (order.size() != in.size()) leave_open("its order is for another rank");
    for (const int64_t axis : order) dims.push_back(in[SizeRules::axis(axis, in.size())]);
  }
  r.set(std::move(dims));
}

void concat(SizeRules& r) {
  Terms dims = r.dims(0);
  const size_t axis = SizeRules::axis(r.node().integer("axis", 0), dims.size());
  for (size_t i = 1; i < r.inputs(); ++i) {
    if (r.dims(i).size() != dims.size()) leave_open("its operands differ in rank");
    dims[axis] = r.term(Op::add, dims[axis], r.dims(i)[axis]);
  }
  Terms integers;
  for (size_t i = 0; i < r.inputs(); ++i) {
    if (!r.has_integers(i) || r.dims(i).size() != 1) return r.set(std::move(dims));
    integers.insert(integers.end(), r.integers(i).begin(), r.integers(i).end());
  }
  r.set_integers(std::move(integers), true);
}

// With the integers, where it stays a list or becomes one.
void reshaped(SizeRules& r, Terms dims) {
  if (r.has_integers(0) && dims.size() <= 1) return r.set_integers(r.integers(0), dims.size() == 1);
  r.set(std::move(dims));
}

void reshape(SizeRules& r) {
  const Terms &in = r.dims(0), &wanted = r.integers(1);
  const bool zero_is_zero = r.node().integer("allowzero", 0) != 0;
  // Each size as it is wanted, and as a factor of those that are not left out.
  Terms dims, factors;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto size = r.number(wanted[i]);
    int dim = wanted[i];
    if ((!size || *size == 0) && !zero_is_zero) {
      if (i < in.size()) {
        dim = size ? in[i] : r.term(Op::unless_zero, dim, in[i]);
      } else if (size) {
        leave_open("a size has no counterpart");
      }
    }
    dims.push_back(dim);
    factors.push_back(r.term(Op::unless_open, dim, r.constant(1)));
  }
  // Sizes on both sides divide out.
  Terms above = in, below;
  for (const int factor : factors) {
    const auto both = std::find(above.begin(), above.end(), factor);
    if (both != above.end() && r.number(factor) != 0) {
      above.erase(both);
    } else {
      below.push_back(factor);
    }
  }
  if (std::any_of(dims.begin(), dims.end(), [&](int dim) { return r.number(dim).value_or(-1) == -1; })) {
    const int rest = r.term(Op::div, r.product(above), r.product(below));
    for (int& dim : dims) dim = r.term(Op::unless_open, dim, rest);
  }
  reshaped(r, std::move(dims));
}

void unsqueeze(SizeRules& r) {
  const Terms& in = r.dims(0);
  const auto axes = r.numbers(1, "axes");
  if (!axes) leave_open("it has no axes");
  const size_t rank = in.size() + axes->size();
  std::vector<bool> added(rank, false);
  for (const int64_t axis : *axes) added[SizeRules::axis(axis, rank)] = true;
  if (std::count(added.begin(), added.end(), true) != static_cast<ptrdiff_t>(axes->size()))
    leave_open("an axis comes twice");
  Terms dims;
  for (size_t i = 0, from = 0; i < rank; ++i) dims.push_back(added[i] ? r.constant(1) : in[from++]);
  reshaped(r, std::move(dims));
}

void squeeze(SizeRules& r) {
  const Terms& in = r.dims(0);
  const auto axes = r.numbers(1, "axes");
  std::vector<bool> dropped(in.size(), false);
  for (size_t i = 0; !axes && i < in.size(); ++i) {
    if (!r.number(in[i])) leave_open("which axes it drops depends on sizes");
    dropped[i] = r.number(in[i]) == 1;
  }
  for (size_t i = 0; axes && i < axes->size(); ++i) dropped[SizeRules::axis((*axes)[i], in.size())] = true;
  Terms dims;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!dropped[i]) dims.push_back(in[i]);
  }
  reshaped(r, std::move(dims));
}

void flatten(SizeRules& r) {
  const Terms& in = r.dims(0);
  int64_t axis = r.node().integer("axis", 1);
  const auto rank = static_cast<int64_t>(in.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) leave_open("its axis is outside");
  r.set({r.product(Terms(in.begin(), in.begin() + axis)), r.product(Terms(in.begin() + axis, in.end()))});
}

void shape(SizeRules& r) {
  const Terms& in = r.dims(0);
  const auto rank = static_cast<int64_t>(in.size());
  const auto bound = [&](std::string_view name, int64_t fallback) {
    const int64_t given = r.node().integer(name, fallback);
    return std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank);
  };
  const int64_t start = bound("start", 0), end = std::max(bound("end", rank), start);
  r.set_integers(Terms(in.begin() + start, in.begin() + end), true);
}

void gather(SizeRules& r) {
  const Terms &data = r.dims(0), &indices = r.dims(1);
  const size_t axis = SizeRules::axis(r.node().integer("axis", 0), data.size());
  if (r.has_integers(0) && r.has_integers(1) && data.size() == 1) {
    const Terms& from = r.integers(0);
    const auto wanted = r.numbers(1, "");
    Terms made;
    for (const int64_t index : *wanted) made.push_back(from[SizeRules::axis(index, from.size())]);
    return r.set_integers(std::move(made), indices.size() == 1);
  }
  Terms dims(data.begin(), data.begin() + static_cast<ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), data.begin() + static_cast<ptrdiff_t>(axis) + 1, data.end());
  r.set(std::move(dims));
}

// The size that is left of an axis, all numbers being given.
int cut(SizeRules& r, int size, int64_t start, int64_t end) {
  const auto known = r.number(size);
  if (known) {
    const auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + *known : at, 0, *known); };
    return r.constant(std::max<int64_t>(bound(end) - bound(start), 0));
  }
  const bool to_end = end >= std::numeric_limits<int32_t>::max();
  if (start >= 0 && to_end) return r.term(Op::sub, size, r.constant(start));
  if (start >= 0 && end < 0 && end > std::numeric_limits<int32_t>::min()) {
    return r.term(Op::sub, size, r.constant(start - end));
  }
  if (start < 0 && start > std::numeric_limits<int32_t>::min() && to_end) {
    return r.term(Op::min, size, r.constant(-start));
  }
  if (start == 0 && end > 0) return r.term(Op::min, size, r.constant(end));
  leave_open("what is left of an axis depends on its size");
}

void slice(SizeRules& r) {
  if (r.node().since_version < 10) leave_open("its bounds are attributes");
  const auto starts = r.numbers(1, "").value(), ends = r.numbers(2, "").value();
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (r.has(3)) axes = r.numbers(3, "").value();
  if (r.has(4)) steps = r.numbers(4, "").value();
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    leave_open("lengths");
  if (std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; })) leave_open("it has steps");
  if (r.has_integers(0) && r.dims(0).size() == 1 && starts.size() == 1) {
    const Terms& from = r.integers(0);
    const auto size = static_cast<int64_t>(from.size());
    const auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    const int64_t start = bound(starts[0]), end = std::max(bound(ends[0]), start);
    return r.set_integers(Terms(from.begin() + start, from.begin() + end), true);
  }
  Terms dims = r.dims(0);
  std::vector<bool> done(dims.size(), false);
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = SizeRules::axis(axes[i], dims.size());
    if (done[axis]) leave_open("an axis comes twice");
    done[axis] = true;
    dims[axis] = cut(r, dims[axis], starts[i], ends[i]);
  }
  r.set(std::move(dims));
}

void split(SizeRules& r) {
  const Terms& in = r.dims(0);
  const size_t axis = SizeRules::axis(r.node().integer("axis", 0), in.size());
  const auto sizes = r.numbers(1, "split");
  const size_t count = r.node().outputs.size();
  const auto whole = r.number(in[axis]);
  const auto parts = static_cast<int64_t>(count);
  if (sizes ? sizes->size() != count : !whole || *whole % parts != 0) leave_open("its parts depend on sizes");
  for (size_t i = 0; i < count; ++i) {
    Terms dims = in;
    dims[axis] = r.constant(sizes ? (*sizes)[i] : *whole / parts);
    r.set(std::move(dims), i);
  }
}

void expand(SizeRules& r) {
  Terms wanted;
  for (const int term : r.integers(1)) wanted.push_back(r.term(Op::positive, term));
  r.set(r.broadcast(r.dims(0), wanted));
}

using Rules = std::map<std::string, SizeRule, std::less<>>;

void add(Rules& rules, SizeRule rule, std::string_view ops) {
  for (size_t at = 0; at < ops.size();) {
    const size_t end = std::min(ops.find(' ', at), ops.size());
    rules.emplace(ops.substr(at, end - at), rule);
    at = end + 1;
  }
}

const Rules& rules() {
  static const Rules table = [] {
    Rules made;
    add(made, same,
        "Abs Acos Asin Atan BatchNormalization Ceil Celu Clip Cos CumSum DequantizeLinear Elu Erf "
        "Exp Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax InstanceNormalization "
        "IsInf IsNaN LRN LayerNormalization LeakyRelu Log LogSoftmax LpNormalization Mish Neg Not "
        "PRelu QuantizeLinear RMSNormalization Reciprocal Relu Round ScatterElements ScatterND Selu Sigmoid Sign "
        "Sin Softmax Softplus Softsign Sqrt Tan Tanh ThresholdedRelu Trilu");
    add(made, identity, "Cast Dropout Identity");
    add(made, elementwise, "And Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Or Pow Sum Where Xor");
    add(made, arithmetic<Op::add>, "Add");
    add(made, arithmetic<Op::sub>, "Sub");
    add(made, arithmetic<Op::mul>, "Mul");
    add(made, arithmetic<Op::div>, "Div");
    add(made, matmul, "MatMul");
    add(made, gemm, "Gemm");
    add(made, transpose, "Transpose");
    add(made, concat, "Concat");
    add(made, reshape, "Reshape");
    add(made, unsqueeze, "Unsqueeze");
    add(made, squeeze, "Squeeze");
    add(made, flatten, "Flatten");
    add(made, shape, "Shape");
    add(made, gather, "Gather");
    add(made, slice, "Slice");
    add(made, split, "Split");
    add(made, expand, "Expand");
    add(made, pad_sizes, "Pad");
    add(made, conv_sizes, "Conv");
    add(made, pool_sizes, "AveragePool MaxPool");
    add(made, global_pool_sizes, "GlobalAveragePool GlobalMaxPool");
    add(made, reduce_sizes,
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
        "ReduceSum ReduceSumSquare");
    add(made, arg_reduce_sizes, "ArgMax ArgMin");
    return made;
  }();
  return table;
}

}  // namespace

SizeRule find_size_rule(const OpNode& node) {
  if (!node.domain.empty() && node.op != "Gelu") return nullptr;
  const auto rule = rules().find(node.op);
  return rule == rules().end() ? nullptr : rule->second;
}

}  // namespace softneuro::ort
