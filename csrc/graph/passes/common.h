// What several passes ask of a graph, and the small edits they share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace softneuro {

// Layer types all of whose routines take an activation, or a residual and then an activation, as post-ops.
bool accepts_activation(std::string_view type);
bool accepts_residual(std::string_view type);

// The layer that makes a blob, null for a graph input.
const Layer* producer_of(const Graph& graph, int blob);
// Index of the one layer that reads the blob, once; -1 if there is none, more, or the blob is a graph output.
int sole_reader(const Graph& graph, int blob);
// The layer that makes a blob which nothing but the layer `reader` reads, else null.
const Layer* private_producer(const Graph& graph, int blob, int reader);
int index_of(const Graph& graph, const Layer* layer);
// The value of a blob that a `constant` layer makes, else null.
Constant constant_of(const Graph& graph, int blob);

// Whether a constant operand of this shape has at most one value for each index of an axis of the result.
bool per_channel(const Shape& other, const Shape& out, int axis);

// Whether what is joined with something of this shape has one element, or one for each of its rows, in their order.
bool is_along_rows(const Shape& own, const Shape& of);
// Whether rows, the last axis, are still the same under another shape.
bool keeps_rows(const Shape& a, const Shape& b);

// The blob, or what a reshape makes of it. The layer gets this name.
int with_same_elements(Graph& graph, int blob, const Shape& shape, const std::string& name);

// Gives a layer's readers another blob of the same shape, which gets the name, and leaves the layer behind as a husk
// that no pass looks at and compact() drops.
void retire(Graph& graph, int layer, int replacement);

// A weight whose rows, its parts along axis 0, are multiplied. Quantized ones stay so where their scales can be.
Constant with_row_factors(const Constant& weight, const ConstantData::MakeFactors& make);

// A constant made on demand. `make` must be pure and thread-safe and give as many values as the shape has.
Constant lazy_constant(const Shape& shape, std::function<std::vector<float>()> make);

}  // namespace softneuro
