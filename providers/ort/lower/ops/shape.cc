// Ops that only move or rename elements.
#include <algorithm>
#include <limits>

#include "providers/ort/lower/ops/ops.h"

namespace softneuro::ort {
namespace {

Refusal rest_known(const OpView& view) { return known_from(view, 1); }

void convert_reshape(Lowering& low) {
  low.set(low.reshape(low.blob(0), reshaped(low.node(), low.shape(0), low.known(1).integers())));
}

void convert_flatten(Lowering& low) {
  const Shape in = low.shape(0);
  const int64_t given = low.node().integer("axis", 1);
  const int axis = static_cast<int>(given == in.rank() ? given : low.axis(given, std::max(in.rank(), 1)));
  low.set(low.reshape(low.blob(0), Shape{in.product(0, axis), in.product(axis, in.rank())}));
}

void convert_squeeze(Lowering& low) {
  low.set(low.reshape(low.blob(0), squeezed(low.shape(0), low.integers(1, "axes"))));
}

void convert_unsqueeze(Lowering& low) {
  low.set(low.reshape(low.blob(0), unsqueezed(low.shape(0), low.integers(1, "axes"))));
}

void convert_transpose(Lowering& low) {
  const int rank = low.rank(0);
  std::vector<int64_t> perm = low.node().integers("perm");
  if (perm.empty()) {
    for (int64_t axis = rank - 1; axis >= 0; --axis) perm.push_back(axis);
  }
  low.set(low.add("transpose", {low.blob(0)}, {{"perm", perm}}));
}

void convert_concat(Lowering& low) {
  std::vector<int> blobs;
  for (size_t i = 0; i < low.node().inputs.size(); ++i) {
    const HostTensor* bytes = low.grid() != nullptr && low.is_known(i) ? &low.known(i) : nullptr;
    if (bytes == nullptr || is_real(bytes->type)) {
      blobs.push_back(low.blob(i));
      continue;
    }
    std::vector<float> reals = bytes->reals();
    for (float& real : reals) real = low.real_of(static_cast<double>(real));
    blobs.push_back(low.add("constant", {}, {}, {{"value", constant_from(Shape(bytes->dims), std::move(reals))}}));
  }
  if (blobs.size() == 1) return low.set(blobs[0]);
  low.set(low.add("concat", blobs, {{"axis", low.axis(low.node().integer("axis", 0), low.rank(0))}}));
}

void convert_split(Lowering& low) {
  const HostNode& node = low.node();
  const Shape in = low.shape(0);
  const int64_t axis = low.axis(node.integer("axis", 0), in.rank()), size = in[static_cast<int>(axis)];
  std::vector<int64_t> sizes = low.integers(1, "split");
  if (sizes.empty()) {
    const auto pieces = static_cast<int64_t>(node.outputs.size()), wanted = node.integer("num_outputs", -1);
    const int64_t step = (size + pieces - 1) / pieces;
    if (wanted >= 0 && wanted != pieces) throw Error("num_outputs is " + std::to_string(wanted));
    if (wanted < 0 && size % pieces != 0) throw Error("an axis of " + std::to_string(size) + " does not split evenly");
    for (int64_t i = 0; i < pieces; ++i) sizes.push_back(std::clamp<int64_t>(size - i * step, 0, step));
  }
  int64_t start = 0;
  if (sizes.size() != node.outputs.size()) throw Error("there are " + std::to_string(sizes.size()) + " sizes");
  for (size_t i = 0; i < sizes.size(); ++i) {
    low.set(low.add("slice", {low.blob(0)}, {{"axis", axis}, {"start", start}, {"end", start + sizes[i]}}), i);
    start += sizes[i];
  }
  if (start != size)
    throw Error("the pieces' sizes sum up to " + std::to_string(start) + ", not " + std::to_string(size));
}

Refusal check_slice(const OpView& view) {
  if (view.node().since_version < 10) return "it is older than opset 10";
  if (const HostTensor* steps = view.constant(4)) {
    for (const int64_t step : steps->integers()) {
      if (step < 1) return "it runs backwards";
    }
  }
  return known_from(view, 1);
}

void convert_slice(Lowering& low) {
  int blob = low.blob(0);
  for (const SliceRange& range : slice_ranges(low)) {
    if (range.step < 1) throw Error("it runs backwards");
    if (range.start == 0 && range.step == 1 && range.end == low.shape_of(blob)[static_cast<int>(range.axis)]) continue;
    blob = low.add("slice", {blob},
                   {{"axis", range.axis}, {"start", range.start}, {"end", range.end}, {"step", range.step}});
  }
  low.set(blob);
}

constexpr OpEntry shape_entries[] = {
    {"Reshape", rest_known, convert_reshape, true, Holds::all},
    {"Flatten", accept, convert_flatten, true, Holds::all},
    {"Squeeze", rest_known, convert_squeeze, true, Holds::all},
    {"Unsqueeze", rest_known, convert_unsqueeze, true, Holds::all},
    {"Transpose", accept, convert_transpose, true, Holds::all},
    {"Concat", accept, convert_concat, true, Holds::all},
    {"Split", rest_known, convert_split, true, Holds::all},
    {"Slice", check_slice, convert_slice, true, Holds::all},
};

}  // namespace

std::span<const OpEntry> shape_ops() { return shape_entries; }

}  // namespace softneuro::ort
