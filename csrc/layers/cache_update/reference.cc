#include "base/error.h"
#include "layers/cache_update/cache_update.h"

namespace softneuro {

void cache_update_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const CacheUpdateParams p = cache_update_params(layer, in[0].shape, in[1].shape);
  for (int64_t b = 0; b < p.batch; ++b) {
    const auto start = static_cast<int64_t>(in[2].data[b]);
    if (!p.fits(start)) throw Error("an update at row " + std::to_string(start) + " does not fit");
    for (int64_t o = b * p.outer; o < (b + 1) * p.outer; ++o) {
      for (int64_t row = 0; row < p.size; ++row) {
        // Its row of the update, if it has one.
        const int64_t from = p.circular ? ((row - start) % p.size + p.size) % p.size : row - start;
        const bool is_new = from >= 0 && from < p.added;
        const bool is_old = !is_new && row < p.held && !(p.clear && row >= start);
        for (int64_t i = 0; i < p.inner; ++i) {
          double& to = out.data[(o * p.size + row) * p.inner + i];
          to = is_new   ? in[1].data[(o * p.added + from) * p.inner + i]
               : is_old ? in[0].data[(o * p.held + row) * p.inner + i]
                        : 0;
        }
      }
    }
  }
}

}  // namespace softneuro
