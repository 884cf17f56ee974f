// Images of bytes before a convolution: what fusions that begin with one share.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace softneuro {

// From where bytes become reals to what a convolution reads.
struct ScaledImage {
  std::vector<int> layers;  // ascending; nothing else reads what they write
  Constant values;          // [channels, 256]: what becomes of each byte
};
// Gives what scales the image that the graph's layer `conv` reads. None where that is no image of bytes, or not scaled
// by channel alone.
std::optional<ScaledImage> scaled_image(const Graph& graph, int conv);

}  // namespace softneuro
