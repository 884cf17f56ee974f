#include "net/contiguous.h"

namespace softneuro {

std::optional<size_t> stretch_offset(const Shape& shape, const Schema& schema, int axis, int64_t start, int64_t end) {
  const Layout& layout = schema.layout;
  if (layout.is_tiled()) {
    if (axis > 1 || (axis == 1 && shape[0] != 1)) return std::nullopt;
    Shape one = shape;
    for (int before = 0; before <= axis; ++before) one[before] = 1;
    return dtype_bytes(schema.dtype, start * physical_elements(one, layout));
  }
  // Elements before and after the axis in memory order; a blocked channel axis counts whole blocks.
  int64_t outer = 1, inner = 1;
  const bool channels = axis == 1 && layout.kind != Layout::Kind::nchw;
  for (int other = 0; other < shape.rank(); ++other) {
    if (other == axis) continue;
    bool before = other < axis;
    if (layout.kind == Layout::Kind::nhwc) before = axis == 1 || (other != 1 && other < axis);
    if (layout.is_blocked() && other == 1) {
      outer *= axis == 0 ? 1 : (shape[1] + layout.block - 1) / layout.block;
      inner *= axis == 0 ? (shape[1] + layout.block - 1) / layout.block * layout.block : layout.block;
      continue;
    }
    (before ? outer : inner) *= shape[other];
  }
  if (outer != 1) return std::nullopt;
  if (channels && layout.is_blocked()) {
    if (start % layout.block != 0 || (end % layout.block != 0 && end != shape[1])) return std::nullopt;
  }
  return dtype_bytes(schema.dtype, start * inner);
}

std::vector<size_t> concat_offsets(const Problem& problem, const Schema& schema) {
  const int axis = static_cast<int>(problem.layer->attrs.integer("axis"));
  std::vector<size_t> offsets;
  int64_t start = 0;
  for (const TensorDesc& in : problem.in) {
    const auto offset = stretch_offset(problem.out().shape, schema, axis, start, start + in.shape[axis]);
    if (!offset) return {};
    offsets.push_back(*offset);
    start += in.shape[axis];
  }
  return offsets;
}

bool same_memory(const Shape& shape, const Schema& from, const Schema& to) {
  if (from.platform != to.platform || from.dtype != to.dtype || from.layout.strided) return false;
  const Layout a = from.layout, b = to.layout.with_strides(false);
  if (a == b) return true;
  if (shape.rank() < 2 || a.is_tiled() || b.is_tiled()) return false;
  const int64_t channels = shape[1], inner = shape.product(2, shape.rank());
  const auto block = [&](const Layout& layout) -> int64_t { return layout.is_blocked() ? layout.block : 1; };
  if (channels % block(a) != 0 || channels % block(b) != 0) return false;  // padding lanes
  if (inner == 1) return true;
  // Channels that are together innermost: all of them, a block, or one.
  const auto innermost = [&](const Layout& layout) {
    return layout.kind == Layout::Kind::nhwc ? channels : block(layout);
  };
  return innermost(a) == innermost(b);
}

}  // namespace softneuro
