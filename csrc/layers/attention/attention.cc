#include "layers/attention/attention.h"

#include <cmath>
#include <limits>
#include <string>

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/kinds.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

#define SN_ROUTINES "layers/attention/routines.inc"
#include "layers/contract/collect.inc"

void attention_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

// Beyond any sequence, and far from where sums of two overflow.
constexpr int64_t unlimited = int64_t{1} << 60;

double finite(const Layer& layer, std::string_view name, double fallback) {
  const double value = layer.attrs.real(name, fallback);
  if (!std::isfinite(value)) throw Error(std::string(name) + " must be finite");
  return value;
}

void check_operands(const TensorDesc& q, const TensorDesc& k, const TensorDesc& v) {
  for (const TensorDesc* desc : {&q, &k, &v}) {
    expect_rank(desc->shape, 4);
    if (desc->kind != ValueKind::real) throw Error("q, k and v are reals, not " + desc->str());
  }
  const auto refuse = [&](const std::string& what) {
    throw Error(what + ": q " + q.shape.str() + ", k " + k.shape.str() + ", v " + v.shape.str());
  };
  if (q.shape[0] != k.shape[0] || k.shape[0] != v.shape[0]) refuse("batches differ");
  if (k.shape[1] != v.shape[1]) refuse("k and v have different numbers of heads");
  if (k.shape[1] == 0 ? q.shape[1] != 0 : q.shape[1] % k.shape[1] != 0) {
    refuse("the heads of q are no multiple of those of k");
  }
  if (q.shape[3] != k.shape[3]) refuse("rows of q and k differ in length");
  if (k.shape[2] != v.shape[2]) refuse("k and v differ in their number of rows");
}

void read_mask(const TensorDesc& mask, AttentionParams& p) {
  expect_rank(mask.shape, 4);
  const int64_t wanted[] = {p.batch, p.heads, p.rows};
  bool fits = mask.shape[3] == p.keys;
  for (int axis = 0; axis < 3; ++axis) fits &= mask.shape[axis] == 1 || mask.shape[axis] == wanted[axis];
  if (!fits) {
    throw Error("the mask's shape " + mask.shape.str() + " does not broadcast to " +
                Shape{p.batch, p.heads, p.rows, p.keys}.str());
  }
  p.has_mask = true;
  const auto stride = [&](int axis) { return mask.shape[axis] == 1 ? 0 : mask.shape.product(axis + 1, 4); };
  p.mask_batch = stride(0), p.mask_head = stride(1), p.mask_row = stride(2);
}

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  const AttentionParams p = attention_params(layer, in);
  expect_weights(layer, {}, {"sinks"}, Shape{p.heads});
  if (p.has_lengths && integer_type(in[static_cast<size_t>(p.lengths_input())]) != DType::int64) {
    throw Error("lengths are of int64, not " + in.back().str());
  }
  if (p.has_mask && in[3].kind != (p.mask_adds ? ValueKind::real : ValueKind::boolean)) {
    throw Error("a mask that is added is of reals, one that keeps scores is of booleans, not " + in[3].str());
  }
  if (p.rows_first) return TensorDesc{Shape{p.batch, p.rows, p.heads, p.width}};
  return TensorDesc{Shape{p.batch, p.heads, p.rows, p.width}};
}

}  // namespace

AttentionParams attention_params(const Layer& layer, std::span<const TensorDesc> in) {
  layer.attrs.expect_only({"scale", "softcap", "before", "after", "mask", "nan_if_empty", "zero_nan", "rows_first",
                           "lowest_drops", "at_end", "stops"});
  if (in.size() < 3 || in.size() > 5) {
    throw Error("attention takes q, k, v, perhaps a mask and lengths, not " + std::to_string(in.size()) + " inputs");
  }
  const TensorDesc &q = in[0], &k = in[1], &v = in[2];
  check_operands(q, k, v);
  AttentionParams p;
  p.batch = q.shape[0], p.heads = q.shape[1], p.groups = k.shape[1];
  p.rows = q.shape[2], p.keys = k.shape[2];
  p.depth = q.shape[3], p.width = v.shape[3];
  p.scale = finite(layer, "scale", 1 / std::sqrt(static_cast<double>(p.depth)));
  p.softcap = finite(layer, "softcap", 0);
  if (p.softcap < 0) throw Error("softcap must not be negative");
  const auto limit = [&](std::string_view name) {
    const int64_t value = layer.attrs.integer(name, unlimited);
    if (value < -unlimited || value > unlimited) throw Error(std::string(name) + " is out of range");
    return value;
  };
  p.before = limit("before"), p.after = limit("after");
  if (layer.attrs.flag("nan_if_empty", false)) p.nothing = std::numeric_limits<double>::quiet_NaN();
  p.lowest_drops = layer.attrs.flag("lowest_drops", false);
  p.zero_nan = layer.attrs.flag("zero_nan", false);
  p.rows_first = layer.attrs.flag("rows_first", false);
  const std::string mask = layer.attrs.text("mask", "add");
  if (mask != "add" && mask != "keep") throw Error("mask must be add or keep, not '" + mask + "'");
  p.mask_adds = mask == "add";
  p.at_end = layer.attrs.flag("at_end", false);
  p.has_lengths = in.size() > 3 && in.back().shape.rank() == 1;
  if (p.has_lengths && in.back().shape[0] != p.batch) {
    throw Error(in.back().shape.str() + " lengths are not one for each of a batch of " + std::to_string(p.batch));
  }
  p.stops = layer.attrs.flag("stops", false);
  if ((p.at_end || p.stops) && !p.has_lengths) throw Error("at_end and stops need lengths");
  const size_t masks = in.size() - 3 - (p.has_lengths ? 1 : 0);
  if (masks > 1) throw Error("the last of five inputs must be lengths of rank 1, not " + in.back().shape.str());
  if (masks == 1) read_mask(in[3], p);
  return p;
}

const LayerDef& attention_layer() {
  static const LayerDef def{"attention", infer, one_output<attention_reference>, collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
