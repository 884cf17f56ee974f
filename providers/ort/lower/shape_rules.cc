#include <algorithm>
#include <charconv>
#include <cmath>

#include "providers/ort/lower/lowering.h"
#include "providers/ort/lower/shape_rules.h"

namespace softneuro::ort {

double decimal(float value) {
  if (!std::isfinite(value)) return static_cast<double>(value);
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  double result = 0;
  std::from_chars(text, end, result);
  return result;
}

Shape reshaped(const HostNode& node, const Shape& in, const std::vector<int64_t>& wanted) {
  const bool zero_is_zero = node.integer("allowzero", 0) != 0;
  Shape out;
  int open = -1;
  int64_t known = 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t size = wanted[i];
    if (size == 0 && !zero_is_zero) {
      if (static_cast<int>(i) >= in.rank()) throw Error("size 0 at axis " + std::to_string(i) + " has no counterpart");
      size = in[static_cast<int>(i)];
    }
    if (size < -1 || (size == -1 && open >= 0)) throw Error("the new shape has a size of " + std::to_string(size));
    if (size == -1) open = static_cast<int>(i);
    if (size >= 0) known *= size;
    out.push_back(std::max<int64_t>(size, 0));
  }
  if (open >= 0 && known > 0) out[open] = in.elements() / known;
  if (out.elements() != in.elements()) throw Error("shape " + in.str() + " does not become " + out.str());
  return out;
}

Shape squeezed(const Shape& in, const std::vector<int64_t>& axes) {
  std::vector<bool> dropped(static_cast<size_t>(in.rank()), false);
  for (int i = 0; axes.empty() && i < in.rank(); ++i) dropped[static_cast<size_t>(i)] = in[i] == 1;
  for (const int64_t given : axes) {
    const int64_t axis = given < 0 ? given + in.rank() : given;
    if (axis < 0 || axis >= in.rank() || in[static_cast<int>(axis)] != 1) {
      throw Error("axis " + std::to_string(given) + " of " + in.str() + " cannot be dropped");
    }
    dropped[static_cast<size_t>(axis)] = true;
  }
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (!dropped[static_cast<size_t>(i)]) out.push_back(in[i]);
  }
  return out;
}

Shape unsqueezed(const Shape& in, const std::vector<int64_t>& axes) {
  const int rank = in.rank() + static_cast<int>(axes.size());
  std::vector<bool> added(static_cast<size_t>(rank), false);
  for (const int64_t given : axes) {
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank || added[static_cast<size_t>(axis)]) {
      throw Error("axis " + std::to_string(given) + " cannot be added to " + in.str());
    }
    added[static_cast<size_t>(axis)] = true;
  }
  Shape out;
  for (int i = 0, source = 0; i < rank; ++i) out.push_back(added[static_cast<size_t>(i)] ? 1 : in[source++]);
  return out;
}

std::vector<SliceRange> slice_ranges(const Lowering& low) {
  const Shape in = low.shape(0);
  const auto starts = low.known(1).integers(), ends = low.known(2).integers();
  const std::vector<int64_t> axes = low.has(3) ? low.known(3).integers() : std::vector<int64_t>();
  const std::vector<int64_t> steps = low.has(4) ? low.known(4).integers() : std::vector<int64_t>();
  if (ends.size() != starts.size() || (!axes.empty() && axes.size() != starts.size()) ||
      (!steps.empty() && steps.size() != starts.size())) {
    throw Error("starts, ends, axes and steps differ in length");
  }
  std::vector<SliceRange> ranges;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = low.axis(axes.empty() ? static_cast<int64_t>(i) : axes[i], in.rank());
    const int64_t size = in[static_cast<int>(axis)], step = steps.empty() ? 1 : steps[i];
    if (step == 0) throw Error("its step is zero");
    const auto bound = [&](int64_t value) {
      if (value < 0) value += size;  // cannot overflow: size is positive
      return step > 0 ? std::clamp<int64_t>(value, 0, size) : std::clamp<int64_t>(value, -1, size - 1);
    };
    const int64_t start = bound(starts[i]), end = bound(ends[i]);
    ranges.push_back({axis, start, step > 0 ? std::max(start, end) : end, step});
  }
  return ranges;
}

}  // namespace softneuro::ort
