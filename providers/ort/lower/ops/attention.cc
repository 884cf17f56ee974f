// Attention: ONNX's, and those of ONNX Runtime's own domain that an exporter or its optimizer writes.
#include <string>
#include <vector>

#include "providers/ort/abi/api.h"
#include "providers/ort/lower/ops/heads.h"
#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

enum Input : size_t { query, key, value, mask, past_key, past_value, lengths };
enum Output : size_t { result, present_key, present_value, scores };

Refusal check_operands(const OpView& view) {
  for (const size_t input : {query, key, value}) {
    if (!view.has(input)) return "it has packed or shared operands";
    if (!is_real(view.input(input).type)) return "its operands are " + view.input(input).type.name();
  }
  const int rank = view.rank(query);
  if (rank != 3 && rank != 4) return "rank " + std::to_string(rank) + " is not supported";
  for (const size_t input : {key, value}) {
    if (view.rank(input) != rank) return "its operands differ in rank";
  }
  return {};
}

Refusal check_onnx_attention(const OpView& view) {
  if (Refusal no = check_operands(view); !no.accepted()) return no;
  const HostNode& node = view.node();
  if (view.uses_output(scores)) return "its scores are wanted";
  if (view.has(past_key) != view.has(past_value)) return "it has one of two pasts";
  if (view.has(lengths) && view.has(past_key)) return "its keys have both a past and lengths";
  // Earlier versions of the host may have masks before the cap.
  const bool windowed = node.integer("left_window_size", -1) >= 0 || node.integer("right_window_size", -1) >= 0;
  const bool masked = view.has(mask) || windowed || node.integer("is_causal", 0) != 0;
  const bool cap_first = node.since_version >= 25 || Runtime::get().release() >= 32;
  if (node.real("softcap", 0) != 0 && masked && !cap_first) return "it has a cap besides a mask";
  if (!view.has(mask)) return {};
  const ElementType type = view.input(mask).type;
  if (!is_real(type) && type.dtype() != DType::boolean) return "its mask is " + type.name();
  const int rank = view.rank(mask);
  return rank >= 2 && rank <= 4 ? Refusal() : Refusal("its mask has rank " + std::to_string(rank));
}

// The past, and then what is new; the output that holds both, if it is wanted.
int with_past(Lowering& low, int blob, size_t past, size_t present) {
  const auto& outputs = low.node().outputs;
  if (low.has(past)) blob = low.add("concat", {low.blob(past), blob}, {{"axis", int64_t{2}}});
  if (present < outputs.size() && outputs[present] >= 0) low.set(blob, present);
  return blob;
}

int of_rank_4(Lowering& low, int blob) {
  Shape full;
  for (int axis = low.shape_of(blob).rank(); axis < 4; ++axis) full.push_back(1);
  for (const int64_t size : low.shape_of(blob)) full.push_back(size);
  return low.reshape(blob, full);
}

void convert_onnx_attention(Lowering& low) {
  const HostNode& node = low.node();
  const bool flat = low.rank(query) == 3;
  const int q = heads_of(low, low.blob(query), node.integer("q_num_heads", 0));
  const int64_t shared = node.integer("kv_num_heads", 0);
  const int k = with_past(low, heads_of(low, low.blob(key), shared), past_key, present_key);
  const int v = with_past(low, heads_of(low, low.blob(value), shared), past_value, present_value);
  Layer layer;
  layer.type = "attention";
  if (const double scale = node.real("scale", 0); scale != 0) layer.attrs.set("scale", scale);
  if (const double cap = node.real("softcap", 0); cap != 0) layer.attrs.set("softcap", cap);
  // Row i of the queries stands at position `offset` + i among the keys.
  const int64_t offset = low.has(past_key) ? low.shape(past_key)[2] : 0;
  const int64_t left = node.integer("left_window_size", -1);
  int64_t right = node.integer("right_window_size", -1);
  if (node.integer("is_causal", 0) != 0) right = 0;
  if (left >= 0) layer.attrs.set("before", left - offset);
  if (right >= 0) layer.attrs.set("after", right + offset);
  if (low.has(lengths)) layer.attrs.set("at_end", int64_t{1});
  std::vector<int> inputs{q, k, v};
  if (low.has(mask)) {
    inputs.push_back(of_rank_4(low, low.blob(mask)));
    const bool adds = low.desc(inputs.back()).kind == ValueKind::real;
    layer.attrs.set("mask", std::string(adds ? "add" : "keep"));
    if (adds) layer.attrs.set("lowest_drops", int64_t{1});  // as the host has it
  }
  if (low.has(lengths)) inputs.push_back(low.blob(lengths));
  const int made = low.add(std::move(layer), std::move(inputs));
  low.set(flat ? side_by_side(low, made) : made);
}

// The two of com.microsoft have these in common: a mask of keys, [B,N] of integers that are positive where a key
// counts, and a bias of scores. `padding` and `bias` are the inputs' places.
Refusal check_masks(const OpView& view, size_t padding, size_t bias) {
  if (view.has(padding) && view.rank(padding) != 2) return "its mask is not one of batch and keys";
  if (view.has(padding) && is_real(view.input(padding).type)) return "its mask is of reals";
  if (view.has(bias) && view.rank(bias) != 4) return "its bias has rank " + std::to_string(view.rank(bias));
  return {};
}

// -1 if there is neither.
int masks_of(Lowering& low, size_t padding, size_t bias) {
  int made = low.has(bias) ? low.blob(bias) : -1;
  if (!low.has(padding)) return made;
  const double filter = low.node().real("mask_filter_value", -10000);
  const Shape shape = low.shape(padding);
  int mask = low.add("cast", {low.blob(padding)});
  mask = low.add("activation", {mask}, {{"function", std::string("clamp")}, {"a", 0.0}, {"b", 1.0}});
  // 1 becomes 0, and 0 the filter.
  mask = low.add("binary", {mask}, {{"function", std::string("sub")}, {"scalar", 1.0}});
  mask = low.add("binary", {mask}, {{"function", std::string("mul")}, {"scalar", -filter}});
  mask = low.reshape(mask, {shape[0], 1, 1, shape[1]});
  return made < 0 ? mask : low.add("binary", {made, mask}, {{"function", std::string("add")}});
}

int add_attention(Lowering& low, std::vector<int> operands, int added) {
  const HostNode& node = low.node();
  Layer layer;
  layer.type = "attention";
  if (const double scale = node.real("scale", 0); scale != 0) layer.attrs.set("scale", scale);
  if (node.integer("unidirectional", 0) != 0) layer.attrs.set("after", int64_t{0});
  if (added >= 0) operands.push_back(added);
  return side_by_side(low, low.add(std::move(layer), std::move(operands)));
}

Refusal first_output_only(const OpView& view) {
  for (size_t i = 1; i < view.node().outputs.size(); ++i) {
    if (view.uses_output(i)) return "its output " + std::to_string(i) + " is wanted";
  }
  return {};
}

Refusal check_multi_head(const OpView& view) {
  if (Refusal no = check_operands(view); !no.accepted()) return no;
  if (view.rank(query) != 3) return "its operands are packed";
  for (size_t i = 6; i < 10; ++i) {
    if (view.has(i)) return "it has a past";
  }
  if (view.has(3) && !view.is_known(3)) return "its bias is no constant";
  if (Refusal no = check_masks(view, 4, 5); !no.accepted()) return no;
  return first_output_only(view);
}

void convert_multi_head(Lowering& low) {
  const int64_t heads = low.node().integer("num_heads", 0);
  std::vector<int> operands;
  int64_t start = 0;
  for (const size_t input : {query, key, value}) {
    int blob = low.blob(input);
    const int64_t width = low.shape(input)[2];
    if (low.has(3)) {
      const Constant all = low.weight(3);
      if (start + width > all->elements()) throw Error("its bias has " + std::to_string(all->elements()) + " values");
      const ConstantData::Values values = all->values();
      const Constant own =
          constant_from(Shape{width}, std::vector<float>(values.get() + start, values.get() + start + width));
      blob = low.add("binary", {blob}, {{"function", std::string("add")}}, {{"other", own}});
      start += width;
    }
    operands.push_back(heads_of(low, blob, heads));
  }
  low.set(add_attention(low, std::move(operands), masks_of(low, 4, 5)));
}

Refusal check_packed(const OpView& view) {
  if (view.rank(0) != 3) return "rank " + std::to_string(view.rank(0)) + " is not supported";
  if (!view.has(1) || !view.is_known(1) || (view.has(2) && !view.is_known(2))) return "its weights are no constants";
  if (view.has(4) || view.has(6)) return "it has a past";
  if (view.node().integer("do_rotary", 0) != 0) return "it rotates its operands";
  if (Refusal no = check_masks(view, 3, 5); !no.accepted()) return no;
  return first_output_only(view);
}

void convert_packed(Lowering& low) {
  const HostNode& node = low.node();
  HostNode product = node;
  product.op = "MatMul", product.domain.clear();
  product.inputs = {node.inputs[0], node.inputs[1]};
  product.outputs = {low.added_output()};
  const int64_t heads = node.integer("num_heads", 0), width = low.shape(1)[1];
  std::vector<int64_t> widths = node.integers("qkv_hidden_sizes", {width / 3, width / 3, width / 3});
  if (widths.size() != 3 || widths[0] + widths[1] + widths[2] != width) throw Error("its weights are not of three");
  const Constant bias = low.has(2) ? low.weight(2) : nullptr;
  const int padding_and_bias = masks_of(low, 3, 5);
  low.convert_as(product);
  int all = low.blob_of(product.outputs[0]);
  if (bias != nullptr) all = low.add("binary", {all}, {{"function", std::string("add")}}, {{"other", bias}});
  std::vector<int> operands;
  int64_t start = 0;
  for (const int64_t own : widths) {
    const int part = low.add("slice", {all}, {{"axis", int64_t{2}}, {"start", start}, {"end", start + own}});
    operands.push_back(heads_of(low, part, heads));
    start += own;
  }
  low.set(add_attention(low, std::move(operands), padding_and_bias));
}

Refusal check_attention(const OpView& view) {
  return view.node().domain.empty() ? check_onnx_attention(view) : check_packed(view);
}
void convert_attention(Lowering& low) { low.node().domain.empty() ? convert_onnx_attention(low) : convert_packed(low); }

constexpr OpEntry attention_entries[] = {
    {"Attention", check_attention, convert_attention, false, Holds::anything, Domain::both},
    {"MultiHeadAttention", check_multi_head, convert_multi_head, false, Holds::anything, Domain::microsoft},
};

}  // namespace

std::span<const OpEntry> attention_ops() { return attention_entries; }

}  // namespace softneuro::ort
