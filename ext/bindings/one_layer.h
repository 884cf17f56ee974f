// A graph of one layer, for bindings that look at or run single routines.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ext/bindings/bindings.h"

namespace softneuro::bindings {

struct OneLayer {
  Graph graph;

  OneLayer(const std::string& type, const py::dict& attrs, const py::dict& weights,
           const std::vector<py::tuple>& shapes, const py::dict& post, const std::vector<py::object>& dtypes = {}) {
    Layer layer = to_layer(type, attrs, weights, post);
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Shape shape = to_shape(shapes[i]);
      layer.inputs.push_back(
          graph.add_input("x" + std::to_string(i), i < dtypes.size() ? to_desc(shape, dtypes[i]) : TensorDesc{shape}));
    }
    graph.add_layer(std::move(layer));
    for (const int output : graph.layers().back().outputs) graph.add_output(output);
  }

  Problem problem(int threads) const { return graph.problem(0, threads); }
};

}  // namespace softneuro::bindings
