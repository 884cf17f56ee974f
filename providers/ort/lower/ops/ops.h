// The table of ONNX ops: what each needs, and the layers that it becomes. One file per family.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/refusal.h"
#include "providers/ort/graph/host_graph.h"
#include "providers/ort/lower/lowering.h"
#include "providers/ort/lower/shape_rules.h"

namespace softneuro::ort {

// A later version of an op may mean something else. Raise this only once a runtime runs the newer opset, so that onnx's
// own node tests compare its ops with the host's.
constexpr int newest_opset = 28;

// What is known of a value before there are shapes. `sized`: follows from shapes and constants alone. `weight`: a
// constant that the model dequantizes.
enum class Kind : unsigned char { flow, constant, sized, weight };

// A node as it is asked whether it can be claimed.
class OpView {
 public:
  OpView(const HostGraph& graph, const HostNode& node, std::span<const Kind> kinds)
      : graph_(graph), node_(node), kinds_(kinds) {}

  const HostNode& node() const { return node_; }
  bool has(size_t input) const { return node_.has_input(input); }
  const HostValue& input(size_t index) const { return graph_.value(node_.inputs[index]); }
  // Constant, or it follows from shapes.
  bool is_known(size_t index) const {
    return has(index) && kinds_[static_cast<size_t>(node_.inputs[index])] != Kind::flow;
  }
  // The constant's value, or null.
  const HostTensor* constant(size_t index) const { return has(index) ? input(index).constant.get() : nullptr; }
  // -1 if unknown.
  int rank(size_t index) const { return input(index).has_shape ? static_cast<int>(input(index).dims.size()) : -1; }
  // -1 if unknown. `axis` may be negative.
  int64_t dim(size_t index, int axis) const;
  bool uses_output(size_t index) const;
  const HostGraph& graph() const { return graph_; }
  // Another node over the same values.
  OpView as(const HostNode& node) const { return {graph_, node, kinds_}; }

 private:
  const HostGraph& graph_;
  const HostNode& node_;
  std::span<const Kind> kinds_;
};

// What the input of an op may hold beside reals.
enum class Holds : unsigned char {
  reals,
  quantized,  // tensors of eight bits with a scale, too (HostValue::grid), of which outputs have the same or their own
  bytes,      // and other integers of eight bits and truth values: float32 has each of them
  anything,   // that the core has a type for, without a scale
  all,        // anything, and quantized tensors
};

constexpr bool holds_quantized(Holds holds) {
  return holds == Holds::quantized || holds == Holds::bytes || holds == Holds::all;
}

// Whose ops of the name are meant.
enum class Domain : unsigned char { onnx, microsoft, both };

struct OpEntry {
  std::string_view op;
  // Declines with a reason. Types and ranks of the tensors have been looked at.
  Refusal (*check)(const OpView& view);
  void (*convert)(Lowering& low);
  bool moves_only = false;  // no arithmetic
  Holds holds = Holds::reals;
  Domain domain = Domain::onnx;
};

// Null if there is none.
const OpEntry* find_op(const HostNode& node);
// Whether real constants of the node are weights of its layer; those of other ops say what these compute.
bool has_weights(const HostNode& node);
std::span<const OpEntry> attention_ops();
std::span<const OpEntry> conv_ops();
std::span<const OpEntry> linear_ops();
std::span<const OpEntry> activation_ops();
std::span<const OpEntry> decoding_ops();
std::span<const OpEntry> dynamic_ops();
std::span<const OpEntry> elementwise_ops();
std::span<const OpEntry> norm_ops();
std::span<const OpEntry> pool_ops();
std::span<const OpEntry> qlinear_ops();
std::span<const OpEntry> quantize_ops();
std::span<const OpEntry> reduce_ops();
std::span<const OpEntry> resample_ops();
std::span<const OpEntry> rotary_ops();
std::span<const OpEntry> shape_ops();
std::span<const OpEntry> whole_ops();

// An op that computes with quantized operands what another does with reals. Operands are followed by their scales and
// zero points.
struct QLinearOp {
  std::string_view op, real;
  size_t first, operands;  // 0: all that there are
  size_t scale;            // of the output; its zero point comes next
  int bias = -1;           // integers whose scale is the product of the operands'
};
// Null if it is none.
const QLinearOp* find_qlinear(const HostNode& node);

// As `real`, which is the node at hand but has the channels of its input and output first, where the node has them
// last.
void convert_channels_last(Lowering& low, HostNode real);

// Checks that several families share.
Refusal accept(const OpView& view);
// The inputs from `first` on must be known.
Refusal known_from(const OpView& view, size_t first);
Refusal rank_is(const OpView& view, std::initializer_list<int> ranks);

// Windows of convolutions and poolings along the spatial axes.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation, pads;  // pads: all beginnings, then all ends
};
// Resolves auto_pad for these spatial sizes.
Windows windows_of(const HostNode& node, std::vector<int64_t> kernel, std::span<const int64_t> sizes);
Refusal check_auto_pad(const OpView& view);
// The host pads for dilated windows in its own way, or not at all.
Refusal same_undilated(const OpView& view);
// All that a convolution's attributes may be wrong in.
Refusal check_windows(const OpView& view);
// The conv2d, and of rank 3 what makes one of it, with weights of rank 4; returns its blob, of the node's rank.
int convolved_bytes(Lowering& low, Lowering::Weights weights);

}  // namespace softneuro::ort
