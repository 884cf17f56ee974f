// Arithmetic of two or more operands, with broadcasting.
#include <algorithm>
#include <limits>

#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

int with_scalar(Lowering& low, int blob, std::string_view function, float value, bool reversed = false) {
  if (reversed) {
    return low.add("binary", {blob},
                   {{"function", std::string(function)}, {"scalar", decimal(value)}, {"reversed", int64_t{1}}});
  }
  return low.add("binary", {blob}, {{"function", std::string(function)}, {"scalar", decimal(value)}});
}

// blob (function) a known input, or the reverse.
int with_known(Lowering& low, int blob, std::string_view function, size_t input, bool reversed) {
  const Shape other = low.shape(input);
  if (other.elements() == 1 && other.rank() <= low.shape_of(blob).rank()) {
    return with_scalar(low, blob, function, static_cast<float>(low.known(input).number()), reversed);
  }
  if (reversed) {
    return low.add("binary", {blob}, {{"function", std::string(function)}, {"reversed", int64_t{1}}},
                   {{"other", low.weight(input)}});
  }
  return low.add("binary", {blob}, {{"function", std::string(function)}}, {{"other", low.weight(input)}});
}

void convert_two(Lowering& low, std::string_view function) {
  const int flows = low.blob(low.is_known(0) ? 1 : 0);
  if (low.desc(flows).kind == ValueKind::integer) {
    return low.set(low.add("integer_binary", {low.blob(0), low.blob(1)}, {{"function", std::string(function)}}));
  }
  if (low.is_known(0) && !low.is_known(1)) return low.set(with_known(low, low.blob(1), function, 0, true));
  if (low.is_known(1)) return low.set(with_known(low, low.blob(0), function, 1, false));
  low.set(low.add("binary", {low.blob(0), low.blob(1)}, {{"function", std::string(function)}}));
}

template <const char* function>
void convert_binary(Lowering& low) {
  convert_two(low, function);
}
constexpr char add[] = "add", sub[] = "sub", mul[] = "mul", div[] = "div", pow[] = "pow", min[] = "min", max[] = "max";

template <const char* function>
void convert_many(Lowering& low) {
  const size_t count = low.node().inputs.size();
  size_t first = 0;
  while (first + 1 < count && low.is_known(first)) ++first;
  int blob = low.blob(first);
  for (size_t i = 0; i < count; ++i) {
    if (i == first) continue;
    blob = low.is_known(i) ? with_known(low, blob, function, i, false)
                           : low.add("binary", {blob, low.blob(i)}, {{"function", function}});
  }
  if (low.node().op == "Mean" && count > 1) blob = with_scalar(low, blob, "div", static_cast<float>(count));
  low.set(blob);
}

// A number bounds the values of bytes like a Clip.
template <const char* function>
void convert_extreme(Lowering& low) {
  if (low.grid() == nullptr) return convert_many<function>(low);
  constexpr bool is_max = function == max;
  const double open = std::numeric_limits<double>::infinity();
  int blob = -1;
  for (size_t i = 0; i < low.node().inputs.size(); ++i) {
    if (low.is_known(i)) continue;
    const int other = low.blob(i);
    blob = blob < 0 ? other : low.add("binary", {blob, other}, {{"function", std::string(function)}});
  }
  for (size_t i = 0; i < low.node().inputs.size(); ++i) {
    if (!low.is_known(i)) continue;
    const HostTensor& numbers = low.known(i);
    std::vector<float> reals = numbers.reals();
    for (float& real : reals) real = low.real_of(static_cast<double>(real));
    if (reals.size() == 1 && static_cast<int>(numbers.dims.size()) <= low.shape_of(blob).rank()) {
      const double bound = decimal(reals[0]);
      blob = low.add("activation", {blob},
                     {{"function", std::string("clamp")}, {"a", is_max ? bound : -open}, {"b", is_max ? open : bound}});
    } else {
      const Constant other = constant_from(Shape(numbers.dims), std::move(reals));
      blob = low.add("binary", {blob}, {{"function", std::string(function)}}, {{"other", other}});
    }
  }
  low.set(blob);
}

// Opset 6 and earlier broadcast along an attribute's axis.
Refusal modern(const OpView& view) {
  return view.node().since_version >= 7 ? Refusal() : Refusal("its broadcasting rule is older than opset 7");
}

// Reals, bytes that stand for reals, or integers of a size that layers compute with.
Refusal check_whole(const OpView& view) {
  if (view.input(0).grid || view.input(1).grid) return modern(view);
  const auto type = view.input(0).type.dtype();
  if (type && !is_real(*type) && *type != DType::int64 && *type != DType::int32) {
    return "it computes with " + view.input(0).type.name();
  }
  return modern(view);
}

Refusal check_pow(const OpView& view) {
  if (is_real(view.input(1).type)) return modern(view);
  const HostTensor* exponent = view.constant(1);
  if (exponent != nullptr && exponent->elements() == 1) return {};
  return "its exponent is " + view.input(1).type.name();
}

void convert_neg(Lowering& low) { low.set(with_scalar(low, low.blob(0), "mul", -1)); }
void convert_reciprocal(Lowering& low) { low.set(with_scalar(low, low.blob(0), "div", 1, true)); }
template <const char* function>
void convert_alone(Lowering& low) {
  low.set(low.add("binary", {low.blob(0)}, {{"function", std::string(function)}}));
}
constexpr char absolute[] = "abs", root[] = "sqrt", sine[] = "sin", cosine[] = "cos";

void convert_same(Lowering& low) { low.set(low.blob(0)); }

Refusal check_dropout(const OpView& view) {
  if (view.uses_output(1)) return "its mask is wanted";
  if (!view.has(2)) return {};
  const HostTensor* training = view.constant(2);
  return training != nullptr && training->elements() == 1 && training->number() == 0
             ? Refusal()
             : Refusal("it is in training mode");
}

constexpr OpEntry elementwise_entries[] = {
    {"Add", check_whole, convert_binary<add>, false, Holds::anything},
    {"Sub", check_whole, convert_binary<sub>, false, Holds::anything},
    {"Mul", check_whole, convert_binary<mul>, false, Holds::anything},
    {"Div", modern, convert_binary<div>},
    {"Pow", check_pow, convert_binary<pow>},
    {"Min", modern, convert_extreme<min>, false, Holds::quantized},
    {"Max", modern, convert_extreme<max>, false, Holds::quantized},
    {"Sum", modern, convert_many<add>},
    {"Mean", modern, convert_many<add>},
    {"Neg", accept, convert_neg},
    {"Reciprocal", accept, convert_reciprocal},
    {"Abs", accept, convert_alone<absolute>},
    {"Sqrt", accept, convert_alone<root>},
    {"Sin", accept, convert_alone<sine>},
    {"Cos", accept, convert_alone<cosine>},
    {"Identity", accept, convert_same, true, Holds::all},
    {"Dropout", check_dropout, convert_same, true},
};

}  // namespace

std::span<const OpEntry> elementwise_ops() { return elementwise_entries; }

}  // namespace softneuro::ort
