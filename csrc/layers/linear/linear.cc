#include "layers/linear/linear.h"

#include "layers/contract/routine.h"

namespace softneuro {

#define SN_ROUTINES "layers/linear/routines.inc"
#include "layers/contract/collect.inc"

void linear_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  if (in.size() != 1) throw Error("linear takes one input, not " + std::to_string(in.size()));
  TensorDesc out = in[0];
  const LinearParams p = linear_params(layer, in[0]);
  out.shape[out.shape.rank() - 1] = p.k;
  return out;
}

}  // namespace

LinearParams linear_params(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({});
  return linear_sizes(layer, in);
}

LinearParams linear_sizes(const Layer& layer, const TensorDesc& in) {
  const Shape& weight = layer.weight("weight")->shape();
  if (weight.rank() != 2) throw Error("weight must have 2 axes, not shape " + weight.str());
  const int rank = in.shape.rank();
  if (rank < 1) throw Error("the input must have at least one axis");
  LinearParams p{in.shape.product(0, rank - 1), in.shape[rank - 1], weight[0]};
  if (weight[1] != p.c) {
    throw Error("weight has shape " + weight.str() + ", but the input's last axis is " + std::to_string(p.c));
  }
  const Constant* bias = layer.find_weight("bias");
  if (bias != nullptr && (*bias)->shape() != Shape{p.k}) {
    throw Error("bias has shape " + (*bias)->shape().str() + ", not " + std::to_string(p.k));
  }
  return p;
}

const LayerDef& linear_layer() {
  static const LayerDef def{"linear", infer, one_output<linear_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
