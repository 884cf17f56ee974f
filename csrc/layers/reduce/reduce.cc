#include "layers/reduce/reduce.h"

#include "layers/contract/routine.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/reduce/routines.inc"
#include "layers/contract/collect.inc"

void reduce_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

static ReduceOp parse_function(const std::string& name) {
  static constexpr std::pair<std::string_view, ReduceOp> functions[] = {
      {"mean", ReduceOp::sum}, {"sum", ReduceOp::sum},          {"amax", ReduceOp::max},
      {"amin", ReduceOp::min}, {"norm1", ReduceOp::magnitudes}, {"norm2", ReduceOp::squares}};
  for (const auto& [known, op] : functions) {
    if (known == name) return op;
  }
  throw Error("unknown function '" + name + "'", {}, "give mean, sum, amax, amin, norm1 or norm2");
}

ReduceParams reduce_params(const Layer& layer, const Shape& shape) {
  layer.attrs.expect_only({"function", "axes", "keepdim"});
  const std::string& function = layer.attrs.text("function");
  ReduceParams p;
  p.op = parse_function(function);
  p.mean = function == "mean", p.root = function == "norm2";
  p.keepdim = layer.attrs.flag("keepdim", false);
  const std::vector<int64_t>& axes = layer.attrs.integers("axes");
  if (axes.empty()) throw Error("axes is empty", {}, "list every axis to reduce over");
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= shape.rank()) {
      throw Error("axis " + std::to_string(axis) + " is not one of shape " + shape.str());
    }
    bool& reduced = p.reduced[static_cast<size_t>(axis)];
    if (reduced) throw Error("axis " + std::to_string(axis) + " is given twice");
    reduced = true;
    p.count *= shape[static_cast<int>(axis)];
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!p.reduced[static_cast<size_t>(axis)]) {
      p.out.push_back(shape[axis]);
    } else if (p.keepdim) {
      p.out.push_back(1);
    }
  }
  if ((p.op == ReduceOp::max || p.op == ReduceOp::min) && p.count == 0 && p.out.elements() != 0) {
    throw Error(function + " over an axis without elements, shape " + shape.str());
  }
  return p;
}

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const TensorDesc& x = only_input(in);
  expect_weights(layer, {}, {}, {});
  return TensorDesc{reduce_params(layer, x.shape).out};
}

}  // namespace

const LayerDef& reduce_layer() {
  static const LayerDef def{"reduce", infer, one_output<reduce_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
