#include "providers/ort/lower/ops/ops.h"

#include <algorithm>
#include <unordered_map>

namespace softneuro::ort {

int64_t OpView::dim(size_t index, int axis) const {
  const HostValue& value = input(index);
  if (!value.has_shape) return -1;
  const int rank = static_cast<int>(value.dims.size());
  const int at = axis < 0 ? axis + rank : axis;
  return at >= 0 && at < rank ? value.dims[static_cast<size_t>(at)] : -1;
}

bool OpView::uses_output(size_t index) const {
  return index < node_.outputs.size() && node_.outputs[index] >= 0 && is_read(graph_, node_.outputs[index]);
}

const OpEntry* find_op(const HostNode& node) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const OpEntry*> made;
    for (const auto family : {attention_ops(), conv_ops(), linear_ops(), activation_ops(), decoding_ops(),
                              dynamic_ops(), elementwise_ops(), norm_ops(), pool_ops(), qlinear_ops(), quantize_ops(),
                              reduce_ops(), resample_ops(), rotary_ops(), shape_ops(), whole_ops()}) {
      for (const OpEntry& entry : family) made.emplace(entry.op, &entry);
    }
    return made;
  }();
  const auto found = table.find(node.op);
  if (found == table.end() || node.since_version > newest_opset) return nullptr;
  const Domain domain = found->second->domain;
  const bool ours =
      node.domain.empty() ? domain != Domain::microsoft : node.domain == "com.microsoft" && domain != Domain::onnx;
  return ours ? found->second : nullptr;
}

void convert_channels_last(Lowering& low, HostNode real) {
  const int64_t rank = low.rank(0);
  std::vector<int64_t> first{0, rank - 1}, last{0};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) first.push_back(axis), last.push_back(axis + 1);
  last.push_back(1);
  real.inputs[0] = low.added_value(low.transpose(low.blob(0), first));
  real.outputs = {low.added_output()};
  low.convert_as(real);
  low.set(low.transpose(low.blob_of(real.outputs[0]), last));
}

bool has_weights(const HostNode& node) {
  const OpEntry* entry = find_op(node);
  for (const auto family : {attention_ops(), conv_ops(), linear_ops(), dynamic_ops(), norm_ops(), qlinear_ops()}) {
    for (const OpEntry& one : family) {
      if (&one == entry) return true;
    }
  }
  return false;
}

Refusal accept(const OpView&) { return {}; }

Refusal known_from(const OpView& view, size_t first) {
  for (size_t i = first; i < view.node().inputs.size(); ++i) {
    if (view.has(i) && !view.is_known(i)) return "its input " + std::to_string(i) + " is not constant";
  }
  return {};
}

Refusal rank_is(const OpView& view, std::initializer_list<int> ranks) {
  const int rank = view.rank(0);
  if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) return {};
  return rank < 0 ? Refusal("its input's rank is unknown")
                  : Refusal("rank " + std::to_string(rank) + " is not supported");
}

Refusal check_auto_pad(const OpView& view) {
  const std::string mode = view.node().text("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode == "VALID" || mode == "SAME_UPPER" || mode == "SAME_LOWER") return {};
  return "auto_pad '" + mode + "' is unknown";
}

Refusal same_undilated(const OpView& view) {
  const auto dilation = view.node().integers("dilations");
  const bool dilated = std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; });
  if (!dilated || !view.node().text("auto_pad", "NOTSET").starts_with("SAME")) return {};
  return "auto_pad pads its dilated windows";
}

Windows windows_of(const HostNode& node, std::vector<int64_t> kernel, std::span<const int64_t> sizes) {
  const size_t axes = kernel.size();
  Windows windows{std::move(kernel), node.integers("strides", std::vector<int64_t>(axes, 1)),
                  node.integers("dilations", std::vector<int64_t>(axes, 1)),
                  node.integers("pads", std::vector<int64_t>(2 * axes, 0))};
  if (windows.stride.size() != axes || windows.dilation.size() != axes || windows.pads.size() != 2 * axes) {
    throw Error("strides, dilations or pads do not fit " + std::to_string(axes) + " spatial axes");
  }
  const std::string mode = node.text("auto_pad", "NOTSET");
  if (mode == "NOTSET") return windows;
  for (size_t i = 0; i < axes; ++i) {
    int64_t total = 0;
    if (mode != "VALID") {
      const int64_t extent = windows.dilation[i] * (windows.kernel[i] - 1) + 1, stride = windows.stride[i];
      total = std::max<int64_t>(((sizes[i] + stride - 1) / stride - 1) * stride + extent - sizes[i], 0);
    }
    const int64_t less = total / 2, more = total - less;
    windows.pads[i] = mode == "SAME_LOWER" ? more : less;
    windows.pads[axes + i] = mode == "SAME_LOWER" ? less : more;
  }
  return windows;
}

}  // namespace softneuro::ort
