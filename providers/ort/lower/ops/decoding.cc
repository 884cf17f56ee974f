// Attention with a cache: com.microsoft's GroupQueryAttention, and ONNX's TensorScatter.
#include <algorithm>
#include <string>
#include <vector>

#include "providers/ort/lower/ops/heads.h"
#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

struct Cached {
  enum : size_t {
    queries,
    keys,
    values,
    past_keys,
    past_values,
    lengths,
    total_length,
    cosines,
    sines,
    positions,
    bias,
    sinks
  };
};

Refusal check_group_query(const OpView& view) {
  const HostNode& node = view.node();
  if (view.rank(Cached::queries) != 3) return "its queries have rank " + std::to_string(view.rank(Cached::queries));
  if (view.has(Cached::keys) != view.has(Cached::values)) return "it has one of keys and values";
  if (view.has(Cached::past_keys) != view.has(Cached::past_values)) return "it has one of two pasts";
  for (const size_t input : {Cached::queries, Cached::keys, Cached::values, Cached::past_keys, Cached::past_values,
                             Cached::cosines, Cached::sines, Cached::bias}) {
    if (view.has(input) && !is_real(view.input(input).type)) return "its operands are " + view.input(input).type.name();
  }
  if (view.has(Cached::past_keys) && view.rank(Cached::past_keys) != 4) return "its past has no heads";
  if (!view.is_known(Cached::total_length)) return "its total length does not follow from shapes";
  if (view.has(Cached::sinks) && !view.is_known(Cached::sinks)) return "its sinks are no constants";
  if (view.has(Cached::bias) && view.rank(Cached::bias) != 4)
    return "its bias has rank " + std::to_string(view.rank(Cached::bias));
  constexpr const char* others[] = {"its cache has scales", "its cache has scales", "it normalises its operands",
                                    "it normalises its operands", "its queries are padded"};
  for (size_t i = 0; i < std::size(others); ++i) {
    if (view.has(Cached::sinks + 1 + i)) return others[i];
  }
  if (node.integer("sliding_window_cache", 0) != 0) return "its cache is a window";
  if (node.integer("qk_output", 0) != 0 || view.uses_output(3)) return "its scores are wanted";
  const auto keeps = [&](size_t output) { return output < node.outputs.size() && node.outputs[output] >= 0; };
  // Without presents the host reads a past that it has not written.
  if (view.has(Cached::past_keys) && (!keeps(1) || !keeps(2))) return "it has a past and no present";
  const bool rotates = node.integer("do_rotary", 0) != 0;
  return rotates && (!view.has(Cached::cosines) || !view.has(Cached::sines)) ? Refusal("it has no tables to rotate by")
                                                                             : Refusal();
}

// Sizes of one call. `first`: nothing has been cached before.
struct Call {
  int64_t batch, rows, heads, shared, depth, past, total, size;  // size: rows of the present
  bool first;
};

Call call_of(Lowering& low) {
  const HostNode& node = low.node();
  Call c;
  const Shape shape = low.shape(Cached::queries);
  c.batch = shape[0], c.rows = shape[1];
  c.heads = node.integer("num_heads", 0), c.shared = node.integer("kv_num_heads", 0);
  const int64_t parts = low.has(Cached::keys) ? c.heads : c.heads + 2 * c.shared;
  if (c.heads <= 0 || c.shared <= 0 || shape[2] % parts != 0) throw Error("its heads do not divide its rows");
  c.depth = shape[2] / parts;
  const HostTensor& total = low.known(Cached::total_length);
  if (total.elements() != 1) throw Error("its total length is not one number");
  c.total = total.integers().at(0);
  c.past = low.has(Cached::past_keys) ? low.shape(Cached::past_keys)[2] : 0;
  const bool grows = c.total > c.past;
  if (c.total < c.rows || (grows && c.total != c.past + c.rows)) {
    throw Error("a total length of " + std::to_string(c.total) + " does not fit");
  }
  c.size = std::max(c.total, c.past);
  c.first = c.total == c.rows;
  if (!c.first && c.rows > 1 && c.batch > 1) throw Error("it continues several texts by more than a row");
  if (low.shape(Cached::lengths).elements() != c.batch) throw Error("its lengths are not one for each of the batch");
  return c;
}

// Where the rows of the queries stand, [B or 1,M]. `starts`: of the first of them, by batch.
int positions_of_rows(Lowering& low, const Call& c, int starts) {
  if (low.has(Cached::positions)) {
    if (low.shape(Cached::positions) != Shape{c.batch, c.rows}) throw Error("its positions are not those of its rows");
    const int given = low.blob(Cached::positions);
    if (!c.first) return given;
    // The host looks at no more than the first of them in a first call.
    int start = low.reshape(given, {c.batch * c.rows});
    start = low.add("slice", {start}, {{"axis", int64_t{0}}, {"start", int64_t{0}}, {"end", int64_t{1}}});
    return add_integers(low, as_int64(low, low.reshape(start, {1, 1})),
                        integers_blob(low, {1, c.rows}, counted(0, c.rows)));
  }
  const int steps = integers_blob(low, {1, c.rows}, counted(0, c.rows));
  return c.first ? steps : add_integers(low, low.reshape(starts, {c.batch, 1}), steps);
}

Angles angles_of_rows(Lowering& low, const Call& c, int starts) {
  const Shape table = low.shape(Cached::cosines);
  if (table.rank() != 2 || low.shape(Cached::sines) != table) throw Error("its tables differ, or are none");
  // The host asks for all of this.
  if (table[0] < c.total || table[1] % 8 != 0 || 2 * table[1] > c.depth) throw Error("its tables do not fit");
  return angles_at(low, Cached::cosines, Cached::sines, positions_of_rows(low, c, starts));
}

// The past with what is new, which is the output `present`.
int cached(Lowering& low, const Call& c, int blob, int starts, size_t past, size_t present) {
  if (c.past > 0) {
    blob = low.add("cache_update", {low.blob(past), blob, starts},
                   {{"axis", int64_t{2}}, {"size", c.size}, {"clear", int64_t{1}}});
  }
  const auto& outputs = low.node().outputs;
  if (present < outputs.size() && outputs[present] >= 0) low.set(blob, present);
  return blob;
}

int first_rows(Lowering& low, int blob, int64_t count) {
  if (low.shape_of(blob)[2] == count) return blob;
  return low.add("slice", {blob}, {{"axis", int64_t{2}}, {"start", int64_t{0}}, {"end", count}});
}

Layer attention_of(Lowering& low, const Call& c) {
  const HostNode& node = low.node();
  Layer layer;
  layer.type = "attention";
  if (const double scale = node.real("scale", 0); scale != 0) layer.attrs.set("scale", scale);
  if (const double cap = node.real("softcap", 0); cap != 0) layer.attrs.set("softcap", cap);
  if (node.integer("causal", 1) != 0) {
    const int64_t window = node.integer("local_window_size", -1);
    layer.attrs.set("after", int64_t{0});
    if (window >= 0) layer.attrs.set("before", window - 1);
    // Where these are, the host moves the windows of rows that are padding.
    const bool moves = low.has(Cached::sinks) || node.integer("smooth_softmax", 0) == 1 || node.real("softcap", 0) != 0;
    if (moves && window >= 0 && c.first) layer.attrs.set("stops", int64_t{1});
    if (!c.first) layer.attrs.set("at_end", int64_t{1});
  }
  if (low.has(Cached::bias)) {
    layer.attrs.set("mask", std::string("add"));
    layer.attrs.set("lowest_drops", int64_t{1});  // as the host has it
  }
  if (low.has(Cached::sinks)) {
    layer.set_weight("sinks", low.weight(Cached::sinks));
  } else if (node.integer("smooth_softmax", 0) == 1) {
    layer.set_weight("sinks", constant_from(Shape{c.heads}, std::vector<float>(static_cast<size_t>(c.heads), 0)));
  }
  return layer;
}

void convert_group_query(Lowering& low) {
  const Call c = call_of(low);
  // The number of keys is one more than the input says. What is beyond the cache has none, and the run is rejected.
  const int given = low.reshape(low.blob(Cached::lengths), {c.batch});
  const int counts = low.add("take", {integers_blob(low, {c.size}, counted(1, c.size)), given}, {{"axis", int64_t{0}}});
  const int starts = c.first ? integers_blob(low, {c.batch}, std::vector<int64_t>(static_cast<size_t>(c.batch), 0))
                             : add_integers(low, counts, integers_blob(low, {1}, {c.rows}), "sub");
  int64_t taken = 0;
  const auto operand = [&](size_t input, int64_t heads) {
    if (low.has(Cached::keys)) return heads_of(low, low.blob(input), heads);
    const int64_t start = taken;
    taken += heads * c.depth;
    const int part =
        low.add("slice", {low.blob(Cached::queries)}, {{"axis", int64_t{2}}, {"start", start}, {"end", taken}});
    return heads_of(low, part, heads);
  };
  int q = operand(Cached::queries, c.heads), k = operand(Cached::keys, c.shared), v = operand(Cached::values, c.shared);
  if (low.shape_of(k)[2] != c.rows) throw Error("its keys are not as many as its queries");
  if (low.node().integer("do_rotary", 0) != 0) {
    const Angles angles = angles_of_rows(low, c, starts);
    const bool interleaved = low.node().integer("rotary_interleaved", 0) != 0;
    q = rotated(low, q, angles, interleaved);
    k = rotated(low, k, angles, interleaved);
  }
  k = cached(low, c, k, starts, Cached::past_keys, 1);
  v = cached(low, c, v, starts, Cached::past_values, 2);
  std::vector<int> operands{q, k, v};
  if (low.has(Cached::bias)) {
    operands = {q, first_rows(low, k, c.total), first_rows(low, v, c.total), low.blob(Cached::bias)};
  }
  operands.push_back(counts);
  low.set(side_by_side(low, low.add(attention_of(low, c), std::move(operands))));
}

Refusal check_tensor_scatter(const OpView& view) {
  const ElementType type = view.input(0).type;
  const bool whole =
      type == ElementType(DType::int64) || type == ElementType(DType::int32) || type == ElementType(DType::boolean);
  if (!is_real(type) && !whole) return "its cache is " + type.name();
  const std::string mode = view.node().text("mode", "linear");
  return mode == "linear" || mode == "circular" ? Refusal() : Refusal("its mode is '" + mode + "'");
}

void convert_tensor_scatter(Lowering& low) {
  const HostNode& node = low.node();
  const Shape shape = low.shape(0);
  const int64_t axis = low.axis(node.integer("axis", -2), shape.rank());
  const int starts = low.has(2) ? as_int64(low, low.blob(2))
                                : integers_blob(low, {shape[0]}, std::vector<int64_t>(static_cast<size_t>(shape[0])));
  low.set(low.add("cache_update", {low.blob(0), low.blob(1), starts},
                  {{"axis", axis}, {"circular", int64_t{node.text("mode", "linear") == "circular"}}}));
}

constexpr OpEntry decoding_entries[] = {
    {"GroupQueryAttention", check_group_query, convert_group_query, false, Holds::anything, Domain::microsoft},
    {"TensorScatter", check_tensor_scatter, convert_tensor_scatter, true, Holds::anything},
};

}  // namespace

std::span<const OpEntry> decoding_ops() { return decoding_entries; }

}  // namespace softneuro::ort
