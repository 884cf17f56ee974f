#include "layers/batched_linear/batched_linear.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/batched_linear/routines.inc"
#include "layers/contract/collect.inc"

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  expect_inputs(in, 1);
  const BatchedLinearParams p = batched_linear_params(layer, in[0]);
  return TensorDesc{{p.batch, p.rows, p.k}};
}

void reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const BatchedLinearParams p = batched_linear_params(layer, {in[0].shape});
  const std::vector<double> weight = reference_weight(layer, "weight");
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t row = 0; row < p.rows; ++row)
      for (int64_t k = 0; k < p.k; ++k) {
        const double* x = in[0].data + (b * p.rows + row) * p.c;
        const double* w = weight.data() + (b * p.k + k) * p.c;
        double sum = 0;
        for (int64_t c = 0; c < p.c; ++c) sum += x[c] * w[c];
        out.data[(b * p.rows + row) * p.k + k] = sum;
      }
}

}  // namespace

BatchedLinearParams batched_linear_params(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({});
  expect_rank(in.shape, 3);
  const Shape& weight = layer.weight("weight")->shape();
  expect_rank(weight, 3);
  if (weight[0] != in.shape[0] || weight[2] != in.shape[2]) {
    throw Error("weight has shape " + weight.str() + ", but the input's is " + in.shape.str());
  }
  return {in.shape[0], in.shape[1], in.shape[2], weight[1]};
}

const LayerDef& batched_linear_layer() {
  static const LayerDef def{"batched_linear", infer, one_output<reference>, collect_routines};
  return def;
}

}  // namespace softneuro
