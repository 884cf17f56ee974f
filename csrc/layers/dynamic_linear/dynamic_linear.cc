#include "layers/dynamic_linear/dynamic_linear.h"

#include <algorithm>
#include <cmath>

#include "layers/routine.h"
#include "layers/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/dynamic_linear/routines.inc"
#include "layers/collect.inc"

void dynamic_linear_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  TensorDesc out = only_input(in);
  out.shape[out.shape.rank() - 1] = dynamic_linear_params(layer, out).size.k;
  return out;
}

}  // namespace

DynamicLinearParams dynamic_linear_params(const Layer& layer, const TensorDesc& in) {
  const Attrs& attrs = layer.attrs;
  attrs.expect_only({"rows", "least", "most", "symmetric", "reciprocal", "eps"});
  DynamicLinearParams p;
  p.size = linear_sizes(layer, in);
  const TensorDesc& weight = layer.weight("weight")->desc();
  if (weight.quantization == nullptr) throw Error("the weight is not quantized");
  const int64_t least = attrs.integer("least", 0), most = attrs.integer("most", 255);
  if (least < -128 || most > (least < 0 ? 127 : 255) || least > 0 || most <= 0) {
    throw Error("least and most are " + std::to_string(least) + " and " + std::to_string(most), {},
                "give a range of eight bits with zero in it");
  }
  p.least = static_cast<int32_t>(least), p.most = static_cast<int32_t>(most);
  p.rows = attrs.flag("rows", false);
  p.symmetric = attrs.flag("symmetric", false);
  p.reciprocal = attrs.flag("reciprocal", false);
  const double eps = attrs.real("eps", 0);
  if (!std::isfinite(eps) || eps < 0) throw Error("eps is " + std::to_string(eps), {}, "give a number from 0 on");
  p.eps = static_cast<float>(eps);
  return p;
}

QuantizeSteps DynamicLinearParams::steps(const FloatRange& range) const {
  QuantizeSteps steps{.reciprocal = reciprocal, .zero = symmetric ? (least + most + 1) / 2 : least};
  steps.least = least, steps.most = most;
  const auto span = static_cast<float>(most - least);
  float scale = symmetric ? std::max(-range.least, range.most) / (span / 2) : (range.most - range.least) / span;
  if (scale < eps) scale = eps;
  if (scale == 0) scale = 1;
  steps.scale = std::isfinite(scale) ? scale : std::nanf("");
  if (!symmetric && std::isfinite(scale)) {
    const float zero = static_cast<float>(least) - std::nearbyint(range.least / scale);
    steps.zero = static_cast<int32_t>(std::clamp(zero, static_cast<float>(least), static_cast<float>(most)));
  }
  return steps;
}

const LayerDef& dynamic_linear_layer() {
  static const LayerDef def{"dynamic_linear", infer, one_output<dynamic_linear_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
