// Attention of given queries, keys and values.
#include <string>
#include <vector>

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

Refusal check_attention(const OpView& view) {
  if (Refusal no = check_operands(view); !no.accepted()) return no;
  const HostNode& node = view.node();
  if (view.uses_output(scores)) return "its scores are wanted";
  if (view.has(lengths)) return "its keys have lengths of their own";
  if (view.has(past_key) != view.has(past_value)) return "it has one of two pasts";
  // The host's order of the cap and of masks has changed between its versions.
  const bool masked = view.has(mask) || node.integer("is_causal", 0) != 0;
  if (node.real("softcap", 0) != 0 && masked) return "it has a cap besides a mask";
  if (!view.has(mask)) return {};
  const ElementType type = view.input(mask).type;
  if (!is_real(type) && type.dtype() != DType::boolean) return "its mask is " + type.name();
  const int rank = view.rank(mask);
  return rank >= 2 && rank <= 4 ? Refusal() : Refusal("its mask has rank " + std::to_string(rank));
}

// [B,M,H*D] as [B,H,M,D]
int heads_of(Lowering& low, int blob, int64_t heads) {
  const Shape shape = low.shape_of(blob);
  if (shape.rank() == 4) return blob;
  if (heads <= 0 || shape[2] % heads != 0) {
    throw Error(std::to_string(heads) + " heads do not divide rows of " + std::to_string(shape[2]));
  }
  return low.transpose(low.reshape(blob, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

// The past, and then what is new; the output that holds both, if it is wanted.
int with_past(Lowering& low, int blob, size_t past, size_t present) {
  const auto& outputs = low.node().outputs;
  if (low.has(past)) blob = low.add("concat", {low.blob(past), blob}, {{"axis", int64_t{2}}});
  if (present < outputs.size() && outputs[present] >= 0) low.set(blob, present);
  return blob;
}

int mask_of(Lowering& low) {
  const int blob = low.blob(mask);
  Shape full;
  for (int axis = low.shape_of(blob).rank(); axis < 4; ++axis) full.push_back(1);
  for (const int64_t size : low.shape_of(blob)) full.push_back(size);
  return low.reshape(blob, full);
}

void convert_attention(Lowering& low) {
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
  if (node.integer("is_causal", 0) != 0) {
    layer.attrs.set("after", low.has(past_key) ? low.shape(past_key)[2] : int64_t{0});
  }
  std::vector<int> inputs{q, k, v};
  if (low.has(mask)) {
    inputs.push_back(mask_of(low));
    const bool adds = low.desc(inputs.back()).kind == ValueKind::real;
    layer.attrs.set("mask", std::string(adds ? "add" : "keep"));
  }
  const int made = low.add(std::move(layer), std::move(inputs));
  if (!flat) return low.set(made);
  const Shape shape = low.shape_of(made);
  low.set(low.reshape(low.transpose(made, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]}));
}

constexpr OpEntry attention_entries[] = {
    {"Attention", check_attention, convert_attention, false, Holds::anything},
};

}  // namespace

std::span<const OpEntry> attention_ops() { return attention_entries; }

}  // namespace softneuro::ort
