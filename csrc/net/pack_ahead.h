// Packing a graph's weights before its steps are made. Internal to net/.
#pragma once

#include <memory>
#include <vector>

#include "net/fused_layers.h"
#include "net/net.h"

namespace softneuro {

// Packs side by side what the layers are going to ask the cache for one after the other, which is most of what
// preparing takes. What cannot be packed is left to them, for an error that names the layer.
std::vector<std::shared_ptr<const Packed>> pack_ahead(const Graph& graph, const FusedLayers& fused,
                                                      const Assignment& assignment, int threads, PackedCache& cache);

}  // namespace softneuro
