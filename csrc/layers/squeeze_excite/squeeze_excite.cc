#include "layers/squeeze_excite/squeeze_excite.h"

#include <vector>

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/squeeze_excite/routines.inc"
#include "layers/contract/collect.inc"

namespace {

Activation stage_activation(const Layer& layer, const std::string& role) {
  Activation activation;
  activation.kind = parse_activation(layer.attrs.text(role + "_function", "none"));
  activation.a = static_cast<float>(layer.attrs.real(role + "_a", 0));
  activation.b = static_cast<float>(layer.attrs.real(role + "_b", 0));
  return activation;
}

// Checks a stage from `from` channels to its own number, which is returned.
int64_t check_stage(const Layer& layer, const std::string& role, int64_t from) {
  const Shape& shape = layer.weight(role + "_weight")->shape();
  if (shape.rank() != 4 || shape[1] != from || shape[2] != 1 || shape[3] != 1) {
    throw Error(role + "_weight has shape " + shape.str() + ", not that of a 1x1 convolution of " +
                std::to_string(from) + " channels");
  }
  const Constant* bias = layer.find_weight(role + "_bias");
  if (bias != nullptr && (*bias)->shape() != Shape{shape[0]}) {
    throw Error(role + "_bias has shape " + (*bias)->shape().str() + ", not [" + std::to_string(shape[0]) + "]");
  }
  return shape[0];
}

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  expect_inputs(in, 1);
  squeeze_excite_params(layer, in[0]);
  return in[0];
}

void reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const SqueezeExciteParams p = squeeze_excite_params(layer, {in[0].shape});
  const auto stage = [&](const std::string& role, const Activation& activation, const std::vector<double>& x,
                         int64_t outputs) {
    const std::vector<double> weight = reference_weight(layer, role + "_weight");
    std::vector<double> y(static_cast<size_t>(outputs));
    if (layer.find_weight(role + "_bias") != nullptr) y = reference_weight(layer, role + "_bias");
    for (size_t k = 0; k < y.size(); ++k) {
      for (size_t c = 0; c < x.size(); ++c) y[k] += weight[k * x.size() + c] * x[c];
      y[k] = reference_activation(activation, y[k]);
    }
    return y;
  };
  for (int64_t n = 0; n < p.n; ++n) {
    const double* src = in[0].data + n * p.c * p.pixels;
    double* dst = out.data + n * p.c * p.pixels;
    std::vector<double> mean(static_cast<size_t>(p.c));
    for (int64_t c = 0; c < p.c; ++c) {
      double& sum = mean[static_cast<size_t>(c)];
      for (int64_t i = 0; i < p.pixels; ++i) sum += src[c * p.pixels + i];
      sum /= static_cast<double>(p.pixels);
    }
    const auto gate = stage("excite", p.excite, stage("squeeze", p.squeeze, mean, p.hidden), p.c);
    for (int64_t i = 0; i < p.c * p.pixels; ++i) dst[i] = src[i] * gate[static_cast<size_t>(i / p.pixels)];
  }
}

}  // namespace

SqueezeExciteParams squeeze_excite_params(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({"squeeze_function", "squeeze_a", "squeeze_b", "excite_function", "excite_a", "excite_b"});
  expect_rank(in.shape, 4);
  SqueezeExciteParams p;
  p.n = in.shape[0], p.c = in.shape[1], p.pixels = in.shape[2] * in.shape[3];
  if (p.pixels == 0) throw Error("the image is empty: " + in.shape.str());
  p.hidden = check_stage(layer, "squeeze", p.c);
  if (const int64_t gates = check_stage(layer, "excite", p.hidden); gates != p.c) {
    throw Error("excite_weight has " + std::to_string(gates) + " rows for " + std::to_string(p.c) + " channels");
  }
  p.squeeze = stage_activation(layer, "squeeze");
  p.excite = stage_activation(layer, "excite");
  return p;
}

const LayerDef& squeeze_excite_layer() {
  static const LayerDef def{"squeeze_excite", infer, one_output<reference>, collect_routines};
  return def;
}

}  // namespace softneuro
