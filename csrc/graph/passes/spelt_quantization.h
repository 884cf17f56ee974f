// Quantization as models spell it out in arithmetic: its parts, found on a graph.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace softneuro {

// x (function) y, of two blobs, or of one and a constant.
bool is_binary(const Layer* layer, std::string_view function, int inputs);
// The constant on the right of such a layer of one blob, a weight or null.
Constant constant_operand(const Layer& layer, std::string_view function);
// The one number that this constant has everywhere, on the right, or on the left if `reversed`.
std::optional<double> uniform_operand(const Layer* layer, std::string_view function, bool reversed = false);

bool same_shapes(const Graph& graph, int a, int b);
// The blob that reshapes have made this one of; if `rows_stay`, only by reshapes that keep the last axis.
int origin(const Graph& graph, int blob, bool rows_stay = false);
// Whether blobs are these, in any order, but for their shapes.
bool are_same_elements(const Graph& graph, const std::vector<int>& blobs, const std::vector<int>& wanted);
int64_t elements(const Graph& graph, int blob);
// The size of the last axis; 1 for a blob without axes.
int64_t last_size(const Graph& graph, int blob);
// Whether a blob has one element, or one for each row of another that it is joined with, in their order.
bool is_by_row(const Graph& graph, int blob, int other);

// clamp(round(source * factor) + zero, least, most) of whole numbers within eight bits.
struct RoundedSteps {
  int source = -1;
  int scale = -1;   // a blob whose reciprocal is the factor
  int factor = -1;  // else the layer that multiplies by a constant
  int32_t least = 0, most = 0;
  int zero = -1;  // a blob; else a constant
  double constant_zero = 0;
  int sum = -1;  // the layer that adds the blob, and on which side
  size_t zero_side = 0;
};
std::optional<RoundedSteps> rounded_steps(const Graph& graph, int blob);

// How scale and zero point follow from the values of the source.
struct SpeltRange {
  int source = -1;
  bool rows = false, symmetric = false;
  double eps = 0;
};
std::optional<SpeltRange> range_of(const Graph& graph, const RoundedSteps& steps);

}  // namespace softneuro
