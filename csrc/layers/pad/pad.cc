#include "layers/pad/pad.h"

#include <algorithm>
#include <limits>

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/pad/routines.inc"
#include "layers/contract/collect.inc"

static PadMode parse_mode(const std::string& text) {
  if (text == "constant") return PadMode::constant;
  if (text == "reflect") return PadMode::reflect;
  if (text == "replicate") return PadMode::replicate;
  if (text == "wrap") return PadMode::wrap;
  throw Error("mode must be constant, reflect, replicate or wrap, got \"" + text + "\"");
}

PadParams pad_params(const Layer& layer, const Shape& in) {
  layer.attrs.expect_only({"mode", "pads", "value"});
  const int rank = in.rank();
  PadParams p;
  p.mode = parse_mode(layer.attrs.text("mode"));
  p.value = static_cast<float>(layer.attrs.real("value", 0));
  const std::vector<int64_t>& pads = layer.attrs.integers("pads");
  if (pads.size() != 2 * static_cast<size_t>(rank)) {
    throw Error("pads wants a begin and an end for each of " + std::to_string(rank) + " axes, got " + list_text(pads));
  }
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t before = pads[static_cast<size_t>(axis)], after = pads[static_cast<size_t>(axis + rank)];
    const int64_t size = in[axis];
    bool fits = std::max(before, after) <= limit && std::min(before, after) >= -limit;
    if (p.mode == PadMode::constant || p.mode == PadMode::wrap) {
      if (p.mode == PadMode::wrap && size == 0) fits = before == 0 && after == 0;  // there is nothing to repeat
      fits = fits && before + size >= 0 && after + size >= 0 && before + size + after >= 0;
    } else {
      // A mirror reaches at most to the far edge; there is no edge to repeat if there is nothing.
      const int64_t most = p.mode == PadMode::reflect ? std::max<int64_t>(size - 1, 0) : size == 0 ? 0 : limit;
      fits = fits && std::min(before, after) >= 0 && std::max(before, after) <= most;
    }
    if (!fits) {
      throw Error("pads " + list_text(pads) + " do not fit axis " + std::to_string(axis) + " of " + in.str());
    }
    p.before.push_back(before);
    p.after.push_back(after);
  }
  return p;
}

int64_t pad_source(PadMode mode, int64_t index, int64_t size) {
  if (index >= 0 && index < size) return index;
  switch (mode) {
    case PadMode::constant:
      return -1;
    case PadMode::reflect:
      return index < 0 ? -index : 2 * (size - 1) - index;
    case PadMode::replicate:
      return index < 0 ? 0 : size - 1;
    case PadMode::wrap:
      break;
  }
  const int64_t rest = index % size;
  return rest < 0 ? rest + size : rest;
}

static OutputDescs infer_pad(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 1);
  const PadParams p = pad_params(layer, in[0].shape);
  TensorDesc out = in[0];
  if (p.mode == PadMode::constant && p.value != 0) out.quantization = nullptr;  // zero is a value of every one
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    out.shape[axis] += p.before[static_cast<size_t>(axis)] + p.after[static_cast<size_t>(axis)];
  }
  return out;
}

const LayerDef& pad_layer() {
  static constexpr LayerDef def{"pad", infer_pad, one_output<pad_reference>, collect_routines, Takes::selecting};
  return def;
}

}  // namespace softneuro
