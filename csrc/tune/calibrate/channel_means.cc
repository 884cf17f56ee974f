#include "tune/calibrate/channel_means.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "graph/bias_correction.h"

namespace softneuro {

void ChannelMeans::observe(const float* values, const Shape& shape, int axis) {
  const int64_t channels = shape[axis], outer = shape.product(0, axis);
  const int64_t inner = shape.product(axis + 1, shape.rank());
  sums_.resize(static_cast<size_t>(channels), 0);
  counts_.resize(static_cast<size_t>(channels), 0);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < channels; ++c, values += inner) {
      double sum = 0;
      int64_t count = 0;
      for (int64_t i = 0; i < inner; ++i) {
        if (!std::isfinite(values[i])) continue;
        sum += static_cast<double>(values[i]);
        ++count;
      }
      sums_[static_cast<size_t>(c)] += sum;
      counts_[static_cast<size_t>(c)] += count;
    }
  }
}

ChannelMeans ChannelMeans::without(const ChannelMeans& other) const {
  ChannelMeans left = *this;
  for (size_t c = 0; c < std::min(sums_.size(), other.sums_.size()); ++c) {
    left.sums_[c] -= other.sums_[c];
    left.counts_[c] -= other.counts_[c];
  }
  return left;
}

std::vector<double> ChannelMeans::means() const {
  std::vector<double> means;
  for (size_t c = 0; c < sums_.size(); ++c) {
    if (counts_[c] <= 0) return {};
    char text[32];
    std::snprintf(text, sizeof(text), "%.5e", sums_[c] / static_cast<double>(counts_[c]));
    means.push_back(std::strtod(text, nullptr));
  }
  return means;
}

std::vector<int> channel_axes(const Graph& graph) {
  constexpr int none = -1, several = -2;
  std::vector<int> axes(graph.blobs().size(), none);
  for (const Layer& layer : graph.layers()) {
    if (!has_correctable_bias(layer)) continue;
    int& axis = axes[static_cast<size_t>(layer.inputs[0])];
    const int own = layer.type == "conv2d" ? 1 : graph.blob(layer.inputs[0]).desc.shape.rank() - 1;
    axis = axis == none || axis == own ? own : several;
  }
  for (int& axis : axes) axis = std::max(axis, none);
  return axes;
}

}  // namespace softneuro
