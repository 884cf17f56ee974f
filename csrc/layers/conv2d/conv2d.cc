#include "layers/conv2d/conv2d.h"

#include <limits>

#include "layers/contract/routine.h"

namespace softneuro {

#define SN_ROUTINES "layers/conv2d/routines.inc"
#include "layers/contract/collect.inc"

void conv2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

// Output size along one axis; the caller has bounded every operand by 2^31, so nothing overflows.
int64_t output_size(const char* axis, int64_t size, int64_t before, int64_t after, int64_t kernel, int64_t stride,
                    int64_t dilation) {
  const int64_t padded = size + before + after, extent = dilation * (kernel - 1) + 1;
  if (extent > padded) {
    throw Error("the dilated kernel's " + std::string(axis) + " " + std::to_string(extent) +
                " is larger than the padded input's " + std::to_string(padded));
  }
  return (padded - extent) / stride + 1;
}

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  if (in.size() != 1) throw Error("conv2d takes one input, not " + std::to_string(in.size()));
  const Conv2dParams p = conv2d_params(layer, in[0]);
  return TensorDesc{Shape{p.n, p.k, p.oh, p.ow}};
}

}  // namespace

std::vector<int64_t> sized_integers(const Attrs& attrs, std::string_view name, size_t count, int64_t fallback,
                                    int64_t least) {
  std::vector<int64_t> values = attrs.integers(name, std::vector<int64_t>(count, fallback));
  if (values.size() != count) {
    throw Error("attribute " + std::string(name) + " has " + std::to_string(values.size()) + " values, not " +
                std::to_string(count));
  }
  for (int64_t value : values) {
    if (value < least || value > std::numeric_limits<int32_t>::max()) {
      throw Error("attribute " + std::string(name) + " holds " + std::to_string(value) + ", which is not in [" +
                  std::to_string(least) + ", 2^31)");
    }
  }
  return values;
}

void check_bias(const Layer& layer, int64_t k) {
  const Constant* bias = layer.find_weight("bias");
  if (bias != nullptr && (*bias)->shape() != Shape{k}) {
    throw Error("bias has shape " + (*bias)->shape().str() + ", not " + std::to_string(k) +
                ", the number of output channels");
  }
}

Conv2dParams conv2d_params(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({"stride", "padding", "dilation", "groups"});
  if (in.shape.rank() != 4) throw Error("the input must have 4 axes, not shape " + in.shape.str());
  const Shape& weight = layer.weight("weight")->shape();
  if (weight.rank() != 4) throw Error("weight must have 4 axes, not shape " + weight.str());

  const auto stride = sized_integers(layer.attrs, "stride", 2, 1, 1);
  const auto padding = sized_integers(layer.attrs, "padding", 4, 0, 0);
  const auto dilation = sized_integers(layer.attrs, "dilation", 2, 1, 1);
  Conv2dParams p;
  p.n = in.shape[0], p.c = in.shape[1], p.h = in.shape[2], p.w = in.shape[3];
  p.k = weight[0], p.kh = weight[2], p.kw = weight[3];
  p.sh = stride[0], p.sw = stride[1], p.dh = dilation[0], p.dw = dilation[1];
  p.pt = padding[0], p.pl = padding[1], p.pb = padding[2], p.pr = padding[3];
  p.groups = layer.attrs.integer("groups", 1);

  if (p.groups < 1) throw Error("groups must be positive, not " + std::to_string(p.groups));
  if (p.c < 1 || p.k < 1 || p.kh < 1 || p.kw < 1) {
    throw Error("channels and kernel must not be empty: input " + in.shape.str() + ", weight " + weight.str());
  }
  if (p.c % p.groups != 0 || p.k % p.groups != 0) {
    throw Error("groups " + std::to_string(p.groups) + " does not divide " + std::to_string(p.c) + " input and " +
                std::to_string(p.k) + " output channels");
  }
  if (weight[1] != p.c / p.groups) {
    throw Error("weight has shape " + weight.str() + ", but " + std::to_string(p.c) + " input channels in " +
                std::to_string(p.groups) + " groups want " + std::to_string(p.c / p.groups) + " on its axis 1");
  }
  check_bias(layer, p.k);
  p.oh = output_size("height", p.h, p.pt, p.pb, p.kh, p.sh, p.dh);
  p.ow = output_size("width", p.w, p.pl, p.pr, p.kw, p.sw, p.dw);
  return p;
}

const LayerDef& conv2d_layer() {
  static const LayerDef def{"conv2d", infer, one_output<conv2d_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
