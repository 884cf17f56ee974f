// Activation functions and softmax.
#include <cmath>
#include <limits>

#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

int activation(Lowering& low, int blob, std::string_view function) {
  return low.add("activation", {blob}, {{"function", std::string(function)}});
}

int activation(Lowering& low, int blob, std::string_view function, float a, float b = 0) {
  if (function == "clamp") {
    return low.add("activation", {blob}, {{"function", "clamp"}, {"a", decimal(a)}, {"b", decimal(b)}});
  }
  return low.add("activation", {blob}, {{"function", std::string(function)}, {"a", decimal(a)}});
}

int scalar(Lowering& low, int blob, std::string_view function, float value) {
  return low.add("binary", {blob}, {{"function", std::string(function)}, {"scalar", decimal(value)}});
}

// `name` is a literal.
template <const char* name>
void convert_plain(Lowering& low) {
  low.set(activation(low, low.blob(0), name));
}
constexpr char sigmoid[] = "sigmoid", tanh_[] = "tanh", hardswish[] = "hardswish", mish[] = "mish";
constexpr char softplus[] = "softplus", exp[] = "exp", log[] = "log", erf[] = "erf";

// A ReLU on bytes compares with the number zero, not with the zero point.
void convert_relu(Lowering& low) {
  const int x = low.blob(0);
  if (low.grid() == nullptr) return low.set(activation(low, x, "relu"));
  low.set(activation(low, x, "clamp", low.real_of(0), std::numeric_limits<float>::infinity()));
}

void convert_leaky(Lowering& low) {
  low.set(activation(low, low.blob(0), "leaky_relu", low.node().real("alpha", 0.01F)));
}

void convert_elu(Lowering& low) { low.set(activation(low, low.blob(0), "elu", low.node().real("alpha", 1))); }

void convert_selu(Lowering& low) {
  const float alpha = low.node().real("alpha", 1.67326319217681884765625F);
  const float gamma = low.node().real("gamma", 1.05070102214813232421875F);
  low.set(scalar(low, activation(low, low.blob(0), "elu", alpha), "mul", gamma));
}

// max(0, x) + min(0, alpha (exp(x / alpha) - 1)) = alpha elu(x / alpha)
void convert_celu(Lowering& low) {
  const float alpha = low.node().real("alpha", 1);
  if (alpha == 1) return low.set(activation(low, low.blob(0), "elu", 1));
  low.set(scalar(low, activation(low, scalar(low, low.blob(0), "div", alpha), "elu", 1), "mul", alpha));
}

Refusal check_celu(const OpView& view) {
  return view.node().real("alpha", 1) > 0 ? Refusal() : Refusal("its alpha is not positive");
}

void convert_hard_sigmoid(Lowering& low) {
  const float alpha = low.node().real("alpha", 0.2F), beta = low.node().real("beta", 0.5F);
  if (alpha == 1.0F / 6 && beta == 0.5F) return low.set(activation(low, low.blob(0), "hardsigmoid"));
  const int line = scalar(low, scalar(low, low.blob(0), "mul", alpha), "add", beta);
  low.set(activation(low, line, "clamp", 0, 1));
}

Refusal check_gelu(const OpView& view) {
  const std::string mode = view.node().text("approximate", "none");
  return mode == "none" || mode == "tanh" ? Refusal() : Refusal("approximate '" + mode + "' is unknown");
}

void convert_gelu(Lowering& low) {
  low.set(activation(low, low.blob(0), low.node().text("approximate", "none") == "tanh" ? "gelu_tanh" : "gelu"));
}

// Microsoft's GELUs, of x and a bias that is added to it.
template <const char* function>
void convert_biased(Lowering& low) {
  int x = low.blob(0);
  if (low.has(1) && low.is_known(1)) {
    x = low.add("binary", {x}, {{"function", "add"}}, {{"other", low.weight(1)}});
  } else if (low.has(1)) {
    x = low.add("binary", {x, low.blob(1)}, {{"function", "add"}});
  }
  low.set(activation(low, x, function));
}
constexpr char gelu[] = "gelu", gelu_tanh[] = "gelu_tanh";

void convert_swish(Lowering& low) {
  const float alpha = low.node().real("alpha", low.node().op == "QuickGelu" ? 1.702F : 1);
  low.set(alpha == 1 ? activation(low, low.blob(0), "silu") : activation(low, low.blob(0), "swish", alpha));
}

Refusal check_swish(const OpView& view) {
  return std::isnan(view.node().real("alpha", 1)) ? Refusal("its alpha is NaN") : Refusal();
}

// A bound that is left out is the largest number there is, which an infinity exceeds. One that is NaN bounds nothing.
void convert_clip(Lowering& low) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const bool bytes = low.grid() != nullptr;
  const float limit = bytes                           ? infinity
                      : low.node().since_version < 12 ? std::numeric_limits<float>::max()
                                                      : largest(low.type(0));
  const auto bound = [&](size_t input, std::string_view name, float fallback, float open) {
    const float value = low.has(input) ? low.real_of(low.known(input).number()) : low.node().real(name, fallback);
    return std::isnan(value) ? open : value;
  };
  const float least = bound(1, "min", -limit, -infinity), most = bound(2, "max", limit, infinity);
  if (least == -infinity && most == infinity) return low.set(low.blob(0));
  low.set(activation(low, low.blob(0), "clamp", least, most));
}

Refusal clip_bounds(const OpView& view) { return known_from(view, 1); }

// One slope, or one per channel: of shape [C, 1, 1], say, for an input [N, C, H, W].
bool slope_per_channel(const std::vector<int64_t>& slope, int rank, int64_t channels) {
  const int lead = rank - static_cast<int>(slope.size());
  int64_t count = 1;
  for (const int64_t dim : slope) count *= dim;
  if (count == 1) return lead >= 0;
  return rank >= 2 && lead >= 0 && lead <= 1 && count == channels && slope[static_cast<size_t>(1 - lead)] == channels;
}

Refusal check_prelu(const OpView& view) {
  const HostTensor* slope = view.constant(1);
  if (slope == nullptr) return "its slope is not constant";
  if (!slope_per_channel(slope->dims, view.rank(0), view.dim(0, 1))) {
    return "its slope is neither one number nor one per channel";
  }
  return {};
}

void convert_prelu(Lowering& low) {
  const Constant slope = low.weight(1);
  low.set(low.add("prelu", {low.blob(0)}, {},
                  {{"weight", std::make_shared<const ConstantData>(Shape{slope->elements()}, slope->values())}}));
}

// Before opset 13 the axes from `axis` on are one.
void convert_softmax(Lowering& low) {
  const bool old = low.node().since_version < 13, log = low.node().op == "LogSoftmax";
  const Shape shape = low.shape(0);
  const int rank = shape.rank();
  const int64_t axis = low.axis(low.node().integer("axis", old ? 1 : -1), rank);
  const auto softmax = [&](int blob, int64_t at) {
    return low.add("softmax", {blob}, {{"axis", at}, {"log", int64_t{log}}});
  };
  if (!old || axis == rank - 1) return low.set(softmax(low.blob(0), axis));
  const int a = static_cast<int>(axis);
  const int flat = low.reshape(low.blob(0), Shape{shape.product(0, a), shape.product(a, rank)});
  low.set(low.reshape(softmax(flat, 1), shape));
}

Refusal check_softmax(const OpView& view) { return view.rank(0) > 0 ? Refusal() : Refusal("its input is a scalar"); }

constexpr OpEntry activation_entries[] = {
    {"Relu", accept, convert_relu, false, Holds::quantized},
    {"Sigmoid", accept, convert_plain<sigmoid>},
    {"Tanh", accept, convert_plain<tanh_>},
    {"HardSwish", accept, convert_plain<hardswish>},
    {"Mish", accept, convert_plain<mish>},
    {"Softplus", accept, convert_plain<softplus>},
    {"Exp", accept, convert_plain<exp>},
    {"Log", accept, convert_plain<log>},
    {"Erf", accept, convert_plain<erf>},
    {"LeakyRelu", accept, convert_leaky},
    {"Elu", accept, convert_elu},
    {"Selu", accept, convert_selu},
    {"Celu", check_celu, convert_celu},
    {"HardSigmoid", accept, convert_hard_sigmoid},
    {"Gelu", check_gelu, convert_gelu, false, Holds::reals, Domain::both},
    {"BiasGelu", accept, convert_biased<gelu>, false, Holds::reals, Domain::microsoft},
    {"FastGelu", accept, convert_biased<gelu_tanh>, false, Holds::reals, Domain::microsoft},
    {"QuickGelu", check_swish, convert_swish, false, Holds::reals, Domain::microsoft},
    {"Swish", check_swish, convert_swish},
    {"Clip", clip_bounds, convert_clip, false, Holds::quantized},
    {"PRelu", check_prelu, convert_prelu},
    {"Softmax", check_softmax, convert_softmax},
    {"LogSoftmax", check_softmax, convert_softmax},
};

}  // namespace

std::span<const OpEntry> activation_ops() { return activation_entries; }

}  // namespace softneuro::ort
