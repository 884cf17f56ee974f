#include "layers/binary/binary.h"

#include "base/text.h"
#include "layers/contract/routine.h"
#include "layers/shared/broadcast.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/binary/routines.inc"
#include "layers/contract/collect.inc"

namespace {

ElementwiseOp parse_function(const std::string& name) {
  static constexpr std::pair<std::string_view, ElementwiseOp> functions[] = {
      {"add", ElementwiseOp::add},     {"sub", ElementwiseOp::sub},     {"mul", ElementwiseOp::mul},
      {"div", ElementwiseOp::div},     {"min", ElementwiseOp::min},     {"max", ElementwiseOp::max},
      {"pow", ElementwiseOp::pow},     {"abs", ElementwiseOp::abs},     {"sqrt", ElementwiseOp::sqrt},
      {"rsqrt", ElementwiseOp::rsqrt}, {"round", ElementwiseOp::round}, {"sin", ElementwiseOp::sin},
      {"cos", ElementwiseOp::cos}};
  std::vector<std::string_view> names;
  for (const auto& [known, op] : functions) {
    if (known == name) return op;
    names.push_back(known);
  }
  throw Error("unknown function '" + name + "'", {}, "did you mean '" + std::string(nearest_name(name, names)) + "'?");
}

bool is_unary(ElementwiseOp op) {
  return op == ElementwiseOp::abs || op == ElementwiseOp::sqrt || op == ElementwiseOp::rsqrt ||
         op == ElementwiseOp::round || op == ElementwiseOp::sin || op == ElementwiseOp::cos;
}

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  return TensorDesc{binary_params(layer, in).out};
}

}  // namespace

BinaryParams binary_params(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"function", "scalar", "reversed"});
  BinaryParams p;
  p.function = parse_function(layer.attrs.text("function"));
  const Constant* other = layer.find_weight("other");
  const bool scalar = layer.attrs.find("scalar") != nullptr, reversed = layer.attrs.flag("reversed", false);
  expect_weights(layer, {}, {"other"}, other != nullptr ? (*other)->shape() : Shape{});
  if (other != nullptr && scalar) throw Error("there are both a scalar and a weight 'other'");
  if (is_unary(p.function)) {
    if (in.size() != 1 || other != nullptr || scalar || reversed) throw Error("its function is of one input alone");
    p.constant = 1;  // and of no account
    p.left = in[0].shape;
  } else if (in.size() == 2) {
    if (other != nullptr || scalar || reversed) throw Error("two inputs leave no place for a constant operand");
    p.left = in[0].shape, p.right = in[1].shape;
  } else if (in.size() == 1) {
    if (other == nullptr && !scalar) throw Error("one input wants a constant operand", {}, "give 'scalar' or 'other'");
    if (other != nullptr) p.other = *other;
    if (scalar) p.scalar = static_cast<float>(layer.attrs.real("scalar"));
    p.constant = reversed ? 0 : 1;
    (reversed ? p.right : p.left) = in[0].shape;
    (reversed ? p.left : p.right) = p.other ? p.other->shape() : Shape{};
  } else {
    throw Error("there must be one or two inputs, not " + std::to_string(in.size()));
  }
  p.out = broadcast_shape(p.left, p.right);
  return p;
}

const LayerDef& binary_layer() {
  static const LayerDef def{"binary", infer, one_output<binary_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
