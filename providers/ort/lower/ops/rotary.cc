// RotaryEmbedding of ONNX and of com.microsoft, which have their inputs in another order.
#include <algorithm>
#include <string>

#include "providers/ort/lower/ops/heads.h"
#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

struct Places {
  size_t cosine, sine, positions;
};
Places places_of(const HostNode& node) { return node.domain.empty() ? Places{1, 2, 3} : Places{2, 3, 1}; }

Refusal check_rotary_embedding(const OpView& view) {
  if (view.node().integer("is_packed_batching", 0) != 0) return "its batch is packed";
  const Places at = places_of(view.node());
  for (const size_t input : {size_t{0}, at.cosine, at.sine}) {
    if (!is_real(view.input(input).type)) return "its input " + std::to_string(input) + " holds no reals";
  }
  return rank_is(view, {3, 4});
}

// Elements of a head.
int64_t depth_of(Lowering& low, int64_t half) {
  const Shape shape = low.shape(0);
  if (shape.rank() == 4) return shape[3];
  const HostNode& node = low.node();
  const int64_t heads = node.integer("num_heads", 0);
  if (heads > 0) return shape[2] / heads;
  if (node.domain.empty() || node.integer("rotary_embedding_dim", 0) > 0) throw Error("it does not say how many heads");
  return 2 * half;
}

// [B or 1,M], one for each row.
int positions_of(Lowering& low, size_t input, int64_t batch, int64_t rows) {
  const Shape shape = low.shape(input);
  if (shape == Shape{batch, rows}) return low.blob(input);
  // Else it is where the first row stands.
  if (low.node().domain.empty() || shape != Shape{1}) throw Error("its positions are " + shape.str());
  return add_integers(low, as_int64(low, low.reshape(low.blob(input), {1, 1})),
                      integers_blob(low, {1, rows}, counted(0, rows)));
}

void convert_rotary_embedding(Lowering& low) {
  const HostNode& node = low.node();
  const Places at = places_of(node);
  const Shape shape = low.shape(0), table = low.shape(at.cosine);
  if (table.rank() < 2 || low.shape(at.sine) != table) throw Error("its tables are " + table.str());
  const int64_t half = table[table.rank() - 1], depth = depth_of(low, half);
  const int64_t width = node.integer("rotary_embedding_dim", 0) > 0 ? node.integer("rotary_embedding_dim", 0) : depth;
  if (depth <= 0 || 2 * half != width || width > depth) throw Error("its tables have rows of " + std::to_string(half));
  const bool flat = shape.rank() == 3;
  if (flat && shape[2] % depth != 0) throw Error("its rows hold no heads of " + std::to_string(depth));
  const int x = heads_of(low, low.blob(0), flat ? shape[2] / depth : 0);
  const int64_t batch = low.shape_of(x)[0], rows = low.shape_of(x)[2];
  Angles angles;
  if (low.has(at.positions)) {
    if (!node.domain.empty() && rows > table[0]) throw Error("its tables are too short");
    angles = angles_at(low, at.cosine, at.sine, positions_of(low, at.positions, batch, rows));
  } else {
    if (table != Shape{batch, rows, half}) throw Error("its tables are " + table.str());
    angles = angles_of(low, low.blob(at.cosine), low.blob(at.sine));
  }
  const int made = rotated(low, x, angles, node.integer("interleaved", 0) != 0);
  low.set(flat ? side_by_side(low, made) : made);
}

constexpr OpEntry rotary_entries[] = {
    {"RotaryEmbedding", check_rotary_embedding, convert_rotary_embedding, false, Holds::anything, Domain::both},
};

}  // namespace

std::span<const OpEntry> rotary_ops() { return rotary_entries; }

}  // namespace softneuro::ort
