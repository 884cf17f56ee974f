#include "layers/cache_update/cache_update.h"

#include <string>

#include "layers/contract/routine.h"
#include "layers/contract/validate.h"
#include "layers/shared/kinds.h"

namespace softneuro {

#define SN_ROUTINES "layers/cache_update/routines.inc"
#include "layers/contract/collect.inc"

CacheUpdateParams cache_update_params(const Layer& layer, const Shape& cache, const Shape& update) {
  layer.attrs.expect_only({"axis", "size", "circular", "clear"});
  const int64_t axis = layer.attrs.integer("axis");
  expect_axis("axis", axis, cache.rank());
  if (axis == 0) throw Error("axis 0 is the batch's");
  const int at = static_cast<int>(axis);
  bool fits = update.rank() == cache.rank();
  for (int i = 0; fits && i < cache.rank(); ++i) fits = i == at || update[i] == cache[i];
  if (!fits) throw Error("an update of " + update.str() + " differs from " + cache.str() + " beside its axis");
  CacheUpdateParams p{.batch = cache[0],
                      .outer = cache.product(1, at),
                      .held = cache[at],
                      .added = update[at],
                      .size = layer.attrs.integer("size", cache[at]),
                      .inner = cache.product(at + 1, cache.rank()),
                      .circular = layer.attrs.flag("circular", false),
                      .clear = layer.attrs.flag("clear", false)};
  if (p.circular && (p.clear || p.size != p.held)) throw Error("a circular cache keeps its size and its rows");
  if (p.size < p.added) {
    throw Error(std::to_string(p.added) + " rows do not fit into " + std::to_string(p.size));
  }
  return p;
}

static OutputDescs infer_cache_update(const Layer& layer, std::span<const TensorDesc> in) {
  expect_no_weights(layer);
  expect_inputs(in, 3);
  expect_one_kind(in.first(2));
  const CacheUpdateParams p = cache_update_params(layer, in[0].shape, in[1].shape);
  if (integer_type(in[2]) != DType::int64 || in[2].shape != Shape{p.batch}) {
    throw Error("the places of updates are int64[" + std::to_string(p.batch) + "], not " + in[2].str());
  }
  TensorDesc out = in[0];
  out.shape[static_cast<int>(layer.attrs.integer("axis"))] = p.size;
  out.quantization = nullptr;
  return out;
}

const LayerDef& cache_update_layer() {
  static constexpr LayerDef def{"cache_update", infer_cache_update, one_output<cache_update_reference>,
                                collect_routines, Takes::any};
  return def;
}

}  // namespace softneuro
