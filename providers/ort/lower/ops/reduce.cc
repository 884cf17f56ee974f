// Reductions over axes.
#include <algorithm>

#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

Refusal check_reduce(const OpView& view) {
  return view.rank(0) > 0 ? known_from(view, 1) : Refusal("its input is a scalar");
}

// What of these is left where nothing is reduced has changed from opset to opset.
Refusal check_norm(const OpView& view) {
  if (view.node().integer("noop_with_empty_axes", 0) != 0) return "it may reduce nothing";
  return check_reduce(view);
}

Refusal check_sum(const OpView& view) {
  const ElementType type = view.input(0).type;
  const bool whole = type == ElementType(DType::int64) || type == ElementType(DType::int32);
  return is_real(type) || whole ? check_reduce(view) : Refusal("its input is " + type.name());
}

int negated(Lowering& low, int blob) { return low.add("binary", {blob}, {{"function", "mul"}, {"scalar", -1.0}}); }

std::string function_of(const std::string& op) {
  if (op == "ReduceL1") return "norm1";
  if (op == "ReduceL2") return "norm2";
  if (op == "ReduceMean") return "mean";
  return op == "ReduceSum" || op == "ReduceSumSquare" ? "sum" : "amax";
}

// The last of sums of integers so far, which wrap around.
int whole_sum(Lowering& low, int blob, const std::vector<int64_t>& axes, bool keep) {
  Shape left;
  const Shape in = low.shape_of(blob);
  for (int axis = 0; axis < in.rank(); ++axis) {
    const bool summed = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!summed || keep) left.push_back(summed ? 1 : in[axis]);
  }
  for (const int64_t axis : axes) {
    const int64_t size = in[static_cast<int>(axis)];
    blob = low.add("cumsum", {blob}, {{"axis", axis}});
    blob = low.add("slice", {blob}, {{"axis", axis}, {"start", size - 1}, {"end", size}});
  }
  return low.reshape(blob, left);
}

// Over an image's axes a pooling, which has routines for every layout.
void convert_reduce(Lowering& low) {
  const std::string& op = low.node().op;
  const Shape in = low.shape(0);
  std::vector<int64_t> axes;
  for (const int64_t axis : low.integers(1, "axes")) axes.push_back(low.axis(axis, in.rank()));
  std::sort(axes.begin(), axes.end());
  if (axes.empty()) {
    if (low.node().integer("noop_with_empty_axes", 0) != 0) return low.set(low.blob(0));
    for (int64_t axis = 0; axis < in.rank(); ++axis) axes.push_back(axis);
  }
  const bool keep = low.node().integer("keepdims", 1) != 0, least = op == "ReduceMin";
  if (!is_real(low.type(0))) return low.set(whole_sum(low, low.blob(0), axes, keep));
  const std::string function = function_of(op);
  int blob = least ? negated(low, low.blob(0)) : low.blob(0);
  if (op == "ReduceSumSquare") blob = low.add("binary", {blob, blob}, {{"function", "mul"}});
  if (in.rank() == 4 && axes == std::vector<int64_t>{2, 3} && (function == "mean" || function == "amax")) {
    blob = low.add("adaptive_pool2d", {blob},
                   {{"function", function == "mean" ? "avg" : "max"}, {"output_size", std::vector<int64_t>{1, 1}}});
    if (!keep) blob = low.reshape(blob, Shape{in[0], in[1]});
  } else {
    blob = low.add("reduce", {blob}, {{"function", function}, {"axes", axes}, {"keepdim", int64_t{keep}}});
  }
  low.set(least ? negated(low, blob) : blob);
}

constexpr OpEntry reduce_entries[] = {
    {"ReduceMean", check_reduce, convert_reduce},    {"ReduceSum", check_sum, convert_reduce, false, Holds::anything},
    {"ReduceMax", check_reduce, convert_reduce},     {"ReduceMin", check_reduce, convert_reduce},
    {"ReduceL1", check_norm, convert_reduce},        {"ReduceL2", check_norm, convert_reduce},
    {"ReduceSumSquare", check_norm, convert_reduce},
};

}  // namespace

std::span<const OpEntry> reduce_ops() { return reduce_entries; }

}  // namespace softneuro::ort
