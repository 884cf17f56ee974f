#include "layers/pool2d/pool2d.h"

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/pool2d/routines.inc"
#include "layers/contract/collect.inc"

Pool2dParams pool2d_params(const Layer& layer) {
  const Attrs& attrs = layer.attrs;
  attrs.expect_only({"function", "kernel", "stride", "padding", "dilation", "ceil_mode", "count_include_pad"});
  Pool2dParams p{};
  p.is_max = pool_is_max(attrs.text("function"));
  p.ceil_mode = attrs.flag("ceil_mode", false);
  p.count_include_pad = attrs.flag("count_include_pad", true);
  const auto kernel = fixed_list<2>("kernel", attrs.integers("kernel"), 1);
  const auto stride = fixed_list<2>("stride", attrs.integers("stride"), 1);
  const auto padding = fixed_list<4>("padding", attrs.integers("padding", {0, 0, 0, 0}), 0);
  const auto dilation = fixed_list<2>("dilation", attrs.integers("dilation", {1, 1}), 1);
  if (!p.is_max && (dilation[0] != 1 || dilation[1] != 1)) throw Error("an average takes no dilation");
  for (size_t i = 0; i < 2; ++i) {
    p.axes[i] = {kernel[i], stride[i], padding[i], padding[i + 2], dilation[i]};
    const int64_t extent = dilation[i] * (kernel[i] - 1) + 1;
    if (padding[i] >= extent || padding[i + 2] >= extent) {
      throw Error("padding " + list_text(padding) + " must be smaller than the kernel " + list_text(kernel));
    }
  }
  return p;
}

bool pool_is_max(const std::string& function) {
  if (function == "max") return true;
  if (function == "avg") return false;
  throw Error("function must be max or avg, got \"" + function + "\"");
}

int64_t pooled_size(const PoolGeometry& axis, int64_t size, bool ceil_mode) {
  const int64_t room = size + axis.before + axis.after - (axis.dilation * (axis.kernel - 1) + 1);
  if (room < 0) {
    throw Error("the kernel of " + std::to_string(axis.kernel) + " does not fit a padded size of " +
                std::to_string(size + axis.before + axis.after));
  }
  int64_t outputs = (room + (ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
  if (ceil_mode && (outputs - 1) * axis.stride >= size + axis.before) --outputs;
  return outputs;
}

static OutputDescs infer_pool2d(const Layer& layer, std::span<const TensorDesc> in) {
  const Pool2dParams p = pool2d_params(layer);
  expect_no_weights(layer);
  expect_inputs(in, 1);
  expect_rank(in[0].shape, 4);
  TensorDesc out = in[0];
  // Windows with gaps may have nothing of the image in them, and infinity is no value of a grid.
  if (!p.is_max || p.axes[0].dilation != 1 || p.axes[1].dilation != 1) out.quantization = nullptr;
  for (int i = 0; i < 2; ++i) {
    if (in[0].shape[2 + i] == 0) throw Error("the image is empty: " + in[0].shape.str());
    out.shape[2 + i] = pooled_size(p.axes[static_cast<size_t>(i)], in[0].shape[2 + i], p.ceil_mode);
  }
  return out;
}

const LayerDef& pool2d_layer() {
  static constexpr LayerDef def{"pool2d", infer_pool2d, one_output<pool2d_reference>, collect_routines,
                                Takes::selecting};
  return def;
}

}  // namespace softneuro
