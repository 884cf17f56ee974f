// cache_update: rows of a cache are replaced from a place on that each batch has for itself. The run is rejected if
// they do not fit.
#pragma once

#include <span>

#include "layers/contract/layer.h"

namespace softneuro {

struct CacheUpdateParams {
  int64_t batch, outer;       // of the axes before the one of rows
  int64_t held, added, size;  // rows of the cache, of the update and of the output
  int64_t inner;              // elements of a row
  bool circular;              // rows that do not fit go to the beginning
  bool clear;                 // what is behind the update is zero
  bool fits(int64_t start) const { return start >= 0 && (circular || start <= size - added); }
};
// Throws Error.
CacheUpdateParams cache_update_params(const Layer& layer, const Shape& cache, const Shape& update);

void cache_update_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
