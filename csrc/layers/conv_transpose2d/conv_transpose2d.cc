#include "layers/conv_transpose2d/conv_transpose2d.h"

#include <algorithm>

#include "layers/contract/routine.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

#define SN_ROUTINES "layers/conv_transpose2d/routines.inc"
#include "layers/contract/collect.inc"

void conv_transpose2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  if (in.size() != 1) throw Error("conv_transpose2d takes one input, not " + std::to_string(in.size()));
  const ConvTranspose2dParams p = conv_transpose2d_params(layer, in[0]);
  return TensorDesc{Shape{p.n, p.k, p.oh, p.ow}};
}

int64_t output_size(const char* axis, int64_t size, int64_t padding, int64_t kernel, int64_t stride, int64_t dilation,
                    int64_t extra) {
  if (extra >= std::max(stride, dilation)) {
    throw Error("output_padding " + std::to_string(extra) + " must be smaller than stride or dilation");
  }
  const int64_t result = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1;
  if (result < 0) throw Error("the output's " + std::string(axis) + " would be negative: " + std::to_string(result));
  return result;
}

}  // namespace

ConvTranspose2dParams conv_transpose2d_params(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({"stride", "padding", "output_padding", "dilation", "groups"});
  if (in.shape.rank() != 4) throw Error("the input must have 4 axes, not shape " + in.shape.str());
  const Shape& weight = layer.weight("weight")->shape();
  if (weight.rank() != 4) throw Error("weight must have 4 axes, not shape " + weight.str());

  const auto stride = sized_integers(layer.attrs, "stride", 2, 1, 1);
  const auto padding = sized_integers(layer.attrs, "padding", 2, 0, 0);
  const auto extra = sized_integers(layer.attrs, "output_padding", 2, 0, 0);
  const auto dilation = sized_integers(layer.attrs, "dilation", 2, 1, 1);
  ConvTranspose2dParams p;
  p.n = in.shape[0], p.c = in.shape[1], p.h = in.shape[2], p.w = in.shape[3];
  p.groups = layer.attrs.integer("groups", 1);
  p.kh = weight[2], p.kw = weight[3];
  p.sh = stride[0], p.sw = stride[1], p.dh = dilation[0], p.dw = dilation[1], p.ph = padding[0], p.pw = padding[1];

  if (p.groups < 1) throw Error("groups must be positive, not " + std::to_string(p.groups));
  if (p.c < 1 || weight[1] < 1 || p.kh < 1 || p.kw < 1 || p.h < 1 || p.w < 1) {
    throw Error("channels, image and kernel must not be empty: input " + in.shape.str() + ", weight " + weight.str());
  }
  if (p.c % p.groups != 0) {
    throw Error("groups " + std::to_string(p.groups) + " does not divide " + std::to_string(p.c) + " input channels");
  }
  if (weight[0] != p.c) {
    throw Error("weight has shape " + weight.str() + ", but the input has " + std::to_string(p.c) + " channels");
  }
  p.k = weight[1] * p.groups;
  check_bias(layer, p.k);
  p.oh = output_size("height", p.h, p.ph, p.kh, p.sh, p.dh, extra[0]);
  p.ow = output_size("width", p.w, p.pw, p.kw, p.sw, p.dw, extra[1]);
  return p;
}

const LayerDef& conv_transpose2d_layer() {
  static const LayerDef def{"conv_transpose2d", infer, one_output<conv_transpose2d_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
