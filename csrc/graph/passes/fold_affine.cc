// Batch normalisation and constant per-channel arithmetic go into the weights of the convolution or linear layer before
// them. New weights are made on demand, so that folding needs no second copy of a model.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

// y = x * scale + shift, per channel of one axis.
struct Affine {
  std::vector<double> scale, shift;
};
using MakeAffine = std::function<Affine()>;

MakeAffine batch_norm_affine(const Layer& layer) {
  const double eps = layer.attrs.real("eps");
  return [layer, eps] {
    const std::vector<double> mean = reference_weight(layer, "mean"), variance = reference_weight(layer, "variance");
    Affine affine{std::vector<double>(mean.size(), 1), std::vector<double>(mean.size(), 0)};
    if (layer.find_weight("weight") != nullptr) affine.scale = reference_weight(layer, "weight");
    if (layer.find_weight("bias") != nullptr) affine.shift = reference_weight(layer, "bias");
    for (size_t c = 0; c < mean.size(); ++c) {
      affine.scale[c] /= std::sqrt(variance[c] + eps);
      affine.shift[c] -= mean[c] * affine.scale[c];
    }
    return affine;
  };
}

MakeAffine scale_shift_affine(const Layer& layer) {
  return [layer] { return Affine{reference_weight(layer, "scale"), reference_weight(layer, "shift")}; };
}

std::optional<MakeAffine> binary_affine(const Layer& layer, const Shape& in, const Shape& out, int axis) {
  if (in != out || layer.main_inputs() != 1) return std::nullopt;
  const std::string function = layer.attrs.text("function");
  const bool reversed = layer.attrs.flag("reversed", false);
  if (function != "add" && function != "sub" && function != "mul") {
    // Dividing by a weight that may be zero is not multiplying by a factor.
    const double scalar = layer.attrs.real("scalar", 0);
    if (function != "div" || reversed || !std::isfinite(scalar) || !std::isfinite(1 / scalar)) return std::nullopt;
  }
  const Constant* other = layer.find_weight("other");
  if (other != nullptr && !per_channel((*other)->shape(), out, axis)) return std::nullopt;
  const auto channels = static_cast<size_t>(out[axis]);
  return [layer, function, reversed, channels] {
    std::vector<double> operand{layer.attrs.real("scalar", 0)};
    if (layer.find_weight("other") != nullptr) operand = reference_weight(layer, "other");
    if (operand.size() == 1) operand.assign(channels, operand[0]);
    Affine affine{std::vector<double>(channels, 1), std::vector<double>(channels, 0)};
    for (size_t c = 0; c < channels; ++c) {
      const double value = operand[c];
      if (function == "add") affine.shift[c] = value;
      if (function == "sub") affine.shift[c] = reversed ? value : -value;
      if (function == "sub" && reversed) affine.scale[c] = -1;
      if (function == "mul") affine.scale[c] = value;
      if (function == "div") affine.scale[c] = 1 / value;
    }
    return affine;
  };
}

std::optional<MakeAffine> affine_of(const Layer& layer, const Shape& in, const Shape& out, int axis) {
  if (layer.post.residual) return std::nullopt;
  if (layer.type == "batch_norm" && axis == 1) return batch_norm_affine(layer);
  if (layer.type == "scale_shift" && axis == 1) return scale_shift_affine(layer);
  if (layer.type == "binary") return binary_affine(layer, in, out, axis);
  return std::nullopt;
}

// A product with positive numbers, which may as well be in front of a relu.
bool passes_relu(const Layer& layer, const MakeAffine& make) {
  if (layer.type != "binary" || layer.attrs.text("function") != "mul" || !layer.post.empty()) return false;
  const std::vector<double> scale = make().scale;
  return std::all_of(scale.begin(), scale.end(), [](double x) { return x > 0 && std::isfinite(x); });
}

// Whether with_row_factors() leaves weights bytes, without which the layer means nothing. Products of a few such
// factors stay within float32.
bool leaves_bytes(const Layer& before, const MakeAffine& make) {
  if (before.type != "dynamic_conv2d" && before.type != "dynamic_linear") return true;
  const Constant weight = before.weight("weight");
  const Quantization* own = weight->desc().quantization.get();
  if (own == nullptr || own->axis > 0 || weight->memory() == nullptr) return false;
  const std::vector<double> scale = make().scale;
  return std::all_of(scale.begin(), scale.end(), [](double x) { return x > 1e-8 && x < 1e8; });
}

bool is_relu(const Layer& layer) {
  return layer.type == "activation" && layer.attrs.text("function") == "relu" && layer.post.empty();
}

// The output axis along which a layer's weights have channels; -1 if it has no weights to fold into.
int channel_axis(const Layer& layer, const Shape& out) {
  if (layer.type == "conv2d" || layer.type == "dynamic_conv2d" || layer.type == "conv1d" ||
      layer.type == "conv_transpose2d" || layer.type == "scale_shift")
    return 1;
  const bool has_rows = layer.type == "linear" || layer.type == "dynamic_linear" || layer.type == "linear_blocks";
  return has_rows ? out.rank() - 1 : -1;
}

Constant folded_scales(const Layer& before, int64_t channels, const MakeAffine& make) {
  const Constant scales = before.weight("scales");
  const int64_t blocks = scales->elements() / std::max<int64_t>(1, channels);
  return lazy_constant(scales->shape(), [=] {
    const std::vector<double> factors = make().scale, values = scales->doubles();
    std::vector<float> result;
    for (size_t i = 0; i < values.size(); ++i) {
      result.push_back(static_cast<float>(values[i] * factors[i / static_cast<size_t>(blocks)]));
    }
    return result;
  });
}

Constant folded_weight(const Layer& before, const MakeAffine& make) {
  const Constant weight = before.weight("weight");
  if (before.type != "conv_transpose2d") {
    return with_row_factors(weight, [make] { return make().scale; });
  }
  // Output channels are not the rows: [C, K/groups, ...].
  const int64_t groups = before.attrs.integer("groups", 1);
  return lazy_constant(weight->shape(), [weight, groups, make] {
    const std::vector<double> scale = make().scale;
    const auto values = weight->values();
    const Shape& shape = weight->shape();
    const int64_t rows = shape[0], columns = shape[1];
    const int64_t inner = shape.elements() / std::max<int64_t>(1, rows * columns);
    std::vector<float> result(static_cast<size_t>(shape.elements()));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const double factor = scale[static_cast<size_t>(r / (rows / groups) * columns + c)];
        const int64_t at = (r * columns + c) * inner;
        for (int64_t i = at; i < at + inner; ++i)
          result[static_cast<size_t>(i)] = static_cast<float>(values.get()[i] * factor);
      }
    return result;
  });
}

// A vector of `channels` values computed from an affine and an older vector (zeros where there is none).
Constant folded_vector(const Constant* old, int64_t channels, const MakeAffine& make, bool with_shift) {
  const Constant held = old == nullptr ? nullptr : *old;
  return lazy_constant({channels}, [held, channels, make, with_shift] {
    const Affine affine = make();
    const ConstantData::Values values = held == nullptr ? nullptr : held->values();
    std::vector<float> result;
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      const double value = values == nullptr ? 0 : static_cast<double>(values.get()[c]);
      result.push_back(static_cast<float>(value * affine.scale[c] + (with_shift ? affine.shift[c] : 0)));
    }
    return result;
  });
}

void fold(Layer& before, int64_t channels, const MakeAffine& make) {
  if (before.type == "scale_shift") {
    before.set_weight("scale", folded_vector(before.find_weight("scale"), channels, make, false));
    before.set_weight("shift", folded_vector(before.find_weight("shift"), channels, make, true));
    return;
  }
  if (before.type == "linear_blocks") {
    before.set_weight("scales", folded_scales(before, channels, make));
  } else {
    before.set_weight("weight", folded_weight(before, make));
  }
  before.set_weight("bias", folded_vector(before.find_weight("bias"), channels, make, true));
}

// What is to be folded into one layer. As a list: nested in each other, thousands would recurse when weights are made.
struct Chain {
  int64_t channels;
  std::vector<MakeAffine> makes;
};

MakeAffine one_after_the_other(std::vector<MakeAffine> makes) {
  if (makes.size() == 1) return makes[0];
  return [makes = std::move(makes)] {
    Affine whole = makes[0]();
    for (size_t i = 1; i < makes.size(); ++i) {
      const Affine next = makes[i]();
      for (size_t c = 0; c < whole.scale.size(); ++c) {
        whole.scale[c] *= next.scale[c];
        whole.shift[c] = whole.shift[c] * next.scale[c] + next.shift[c];
      }
    }
    return whole;
  };
}

bool to_scale_shift(Layer& layer, int64_t channels) {
  if (layer.type != "batch_norm") return false;
  const MakeAffine make = batch_norm_affine(layer);
  layer.type = "scale_shift";
  layer.attrs = {};
  layer.weights.clear();
  const auto part = [&](auto member) {
    return lazy_constant({channels}, [make, member] {
      const Affine affine = make();
      const std::vector<double>& values = affine.*member;
      return std::vector<float>(values.begin(), values.end());
    });
  };
  layer.set_weight("scale", part(&Affine::scale));
  layer.set_weight("shift", part(&Affine::shift));
  return true;
}

}  // namespace

bool fold_affine(Graph& graph) {
  bool changed = false;
  std::map<int, Chain> chains;  // by the layer to fold into
  // In topological order, so that a chain of several folds in one go: each is noted before its successor is met.
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    Layer& layer = graph.layer(static_cast<int>(l));
    if (layer.inputs.size() != 1) continue;
    const int input = layer.inputs[0];
    const Shape& out = graph.blob(layer.output()).desc.shape;
    int into = input;  // what the layer to fold into makes
    const Layer* before = producer_of(graph, input);
    bool alone = before != nullptr && sole_reader(graph, input) == static_cast<int>(l);
    const bool relu = alone && is_relu(*before);
    if (relu) {
      const int reader = graph.blob(input).producer;
      into = before->inputs[0];
      before = producer_of(graph, into);
      alone = before != nullptr && sole_reader(graph, into) == reader;
    }
    if (alone && before->post.empty()) {
      const int axis = channel_axis(*before, out);
      const auto make = axis < 0 ? std::nullopt : affine_of(layer, graph.blob(input).desc.shape, out, axis);
      if (make && (!relu || passes_relu(layer, *make)) && leaves_bytes(*before, *make)) {
        const int target = graph.blob(into).producer;
        Chain& chain = chains.try_emplace(target, Chain{out[axis], {}}).first->second;
        chain.makes.push_back(*make);
        if (!relu) graph.layer(target).post = layer.post;
        retire(graph, static_cast<int>(l), input);
        changed = true;
        continue;
      }
    }
    changed |= to_scale_shift(layer, out[1]);
  }
  for (auto& [target, chain] : chains) fold(graph.layer(target), chain.channels, one_after_the_other(chain.makes));
  return changed;
}

}  // namespace softneuro
