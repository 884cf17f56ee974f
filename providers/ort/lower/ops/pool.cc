// Pooling.
#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

Refusal check_pool(const OpView& view) {
  const HostNode& node = view.node();
  if (Refusal no = rank_is(view, {3, 4}); !no.accepted()) return no;
  if (Refusal no = check_auto_pad(view); !no.accepted()) return no;
  if (Refusal no = same_undilated(view); !no.accepted()) return no;
  if (view.uses_output(1)) return "its indices are wanted";
  const auto kernel = node.integers("kernel_shape");
  const size_t axes = kernel.size();
  if (static_cast<int>(axes) != view.rank(0) - 2) return "its kernel does not fit the input's rank";
  const auto dilation = node.integers("dilations", std::vector<int64_t>(axes, 1));
  const auto pads = node.integers("pads", std::vector<int64_t>(2 * axes, 0));
  if (dilation.size() != axes || pads.size() != 2 * axes) return "its attributes do not fit the input's rank";
  for (size_t i = 0; i < axes; ++i) {
    if (node.op == "AveragePool" && dilation[i] != 1) return "an average with dilation is not supported";
    const int64_t extent = dilation[i] * (kernel[i] - 1) + 1;
    if (pads[i] < 0 || pads[axes + i] < 0) return "its pads are negative";
    if (pads[i] >= extent || pads[axes + i] >= extent) return "its pads are as large as the kernel";
  }
  return {};
}

void convert_pool(Lowering& low) {
  const HostNode& node = low.node();
  const Shape in = low.shape(0);
  Windows w = windows_of(node, node.integers("kernel_shape"), std::vector<int64_t>(in.begin() + 2, in.end()));
  int source = low.blob(0);
  const bool flat = in.rank() == 3;
  if (flat) {  // as an image of height one
    source = low.reshape(source, Shape{in[0], in[1], 1, in[2]});
    w = {{1, w.kernel[0]}, {1, w.stride[0]}, {1, w.dilation[0]}, {0, w.pads[0], 0, w.pads[1]}};
  }
  const int64_t ceil_mode = node.integer("ceil_mode", 0);
  int blob;
  if (node.op == "MaxPool") {
    blob = low.add("pool2d", {source},
                   {{"function", "max"},
                    {"kernel", w.kernel},
                    {"stride", w.stride},
                    {"padding", w.pads},
                    {"dilation", w.dilation},
                    {"ceil_mode", ceil_mode}});
  } else {
    blob = low.add("pool2d", {source},
                   {{"function", "avg"},
                    {"kernel", w.kernel},
                    {"stride", w.stride},
                    {"padding", w.pads},
                    {"ceil_mode", ceil_mode},
                    {"count_include_pad", node.integer("count_include_pad", 0)}});
  }
  const Shape out = low.shape_of(blob);
  low.set(flat ? low.reshape(blob, Shape{out[0], out[1], out[3]}) : blob);
}

Refusal check_global(const OpView& view) {
  return view.rank(0) >= 3 ? Refusal() : Refusal("its input has no spatial axes");
}

void convert_global(Lowering& low) {
  const bool max = low.node().op == "GlobalMaxPool";
  const int rank = low.rank(0);
  if (rank == 4) {
    return low.set(low.add("adaptive_pool2d", {low.blob(0)},
                           {{"function", max ? "max" : "avg"}, {"output_size", std::vector<int64_t>{1, 1}}}));
  }
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  low.set(
      low.add("reduce", {low.blob(0)}, {{"function", max ? "amax" : "mean"}, {"axes", axes}, {"keepdim", int64_t{1}}}));
}

HostNode channels_first(const HostNode& node) {
  HostNode real = node;
  real.op = "MaxPool", real.domain.clear(), real.since_version = 12;
  return real;
}

Refusal check_channels_last(const OpView& view) {
  const HostNode real = channels_first(view.node());
  return check_pool(view.as(real));
}

void convert_max_channels_last(Lowering& low) { convert_channels_last(low, channels_first(low.node())); }

constexpr OpEntry pool_entries[] = {
    {"MaxPool", check_pool, convert_pool, false, Holds::quantized},
    {"NhwcMaxPool", check_channels_last, convert_max_channels_last, false, Holds::quantized, Domain::microsoft},
    {"AveragePool", check_pool, convert_pool},
    {"GlobalMaxPool", check_global, convert_global},
    {"GlobalAveragePool", check_global, convert_global},
};

}  // namespace

std::span<const OpEntry> pool_ops() { return pool_entries; }

}  // namespace softneuro::ort
