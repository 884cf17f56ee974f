// Layers with weights read blobs whose means by channel are kept here. What rounded weights add to outputs on average
// follows from them.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace softneuro {

class ChannelMeans {
 public:
  // This adds one batch, which is row-major. What is not finite is left out.
  void observe(const float* values, const Shape& shape, int axis);
  // Returns what there would be had the other's values not been observed here.
  ChannelMeans without(const ChannelMeans& other) const;
  // Means have six digits, which is more than they are good for. There are none if a channel had no finite value.
  std::vector<double> means() const;

 private:
  std::vector<double> sums_;
  std::vector<int64_t> counts_;
};

// Returns by blob the axis along which its channels lie for all layers that read it and have weights. It is -1 where
// there is none.
std::vector<int> channel_axes(const Graph& graph);

}  // namespace softneuro
